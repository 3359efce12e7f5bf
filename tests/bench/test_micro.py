"""The micro layer measures steps that compute what they should."""

from luciole.bench.doctor import findings
from luciole.bench.micro import MICROS, right
from luciole.bench.profiles.micro import MICRO


def test_the_steps_compute_what_they_should() -> None:
    assert right().passed


def test_each_step_does_something_and_says_what_it_guards() -> None:
    assert [micro.name for micro in MICROS if micro.prepare()() <= 0] == []
    assert [micro.name for micro in MICROS if not micro.guards] == []
    assert [metric.name for metric in MICRO.metrics] == [micro.name for micro in MICROS]


def test_the_doctor_names_what_is_missing_and_how_to_get_it() -> None:
    found = {finding.name: finding for finding in findings()}
    assert found["asyncpg"].found
    assert all(finding.text for finding in found.values())
