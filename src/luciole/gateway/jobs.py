"""Job versions at hand: read in batches, kept up to a bound of versions and of payload bytes."""

from collections import OrderedDict
from collections.abc import Collection

from luciole import limits
from luciole.model.ids import JobId
from luciole.model.job import JobSpec
from luciole.model.routing import Route
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import PlanStore


class JobShelf:
    """Job versions by id, the latest used last; immutable, so they never go stale."""

    def __init__(self, store: PlanStore, telemetry: Telemetry) -> None:
        self._store = store
        self._telemetry = telemetry
        self._kept: OrderedDict[JobId, tuple[JobSpec, Route]] = OrderedDict()
        self._payload_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, job_id: JobId) -> tuple[JobSpec, Route] | None:
        """Return a job version and what it asks of an executor, when it is at hand."""
        kept = self._kept.get(job_id)
        if kept is not None and len(self._kept) > limits.JOBS_KEPT // 2:
            self._kept.move_to_end(job_id)  # Below that nothing is thrown out soon, and order costs time.
        return kept

    async def load(self, ids: Collection[JobId]) -> dict[JobId, JobSpec]:
        """Return job versions, read where they are not at hand; ids that can't be read are absent."""
        found: dict[JobId, JobSpec] = {}
        missing = []
        for job_id in ids:
            kept = self.get(job_id)
            if kept is None:
                missing.append(job_id)
            else:
                found[job_id] = kept[0]
        for start in range(0, len(missing), limits.JOBS_READ_MAX):
            chunk = missing[start : start + limits.JOBS_READ_MAX]
            versions = await self._telemetry.timed("load_jobs", self._store.load_jobs(chunk))
            for job_id, version in versions.items():
                found[job_id] = version.spec
                self._keep(job_id, version.spec)
        return found

    def _keep(self, job_id: JobId, spec: JobSpec) -> None:
        if job_id in self._kept:
            return
        self._kept[job_id] = spec, Route(spec.namespace, spec.handler, frozenset(spec.labels))
        self._payload_bytes += len(spec.payload)
        while len(self._kept) > limits.JOBS_KEPT or (
            self._payload_bytes > limits.JOB_BYTES_KEPT and len(self._kept) > 1
        ):
            _, (dropped, _) = self._kept.popitem(last=False)
            self._payload_bytes -= len(dropped.payload)
