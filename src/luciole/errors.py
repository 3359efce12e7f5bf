"""One error root and four families, named for what the caller does next.

`Rejected`: change the request. `Conflict`: look at the present state and decide anew. `Unavailable`: wait
and repeat. `Fatal`: stop and repair. Each class has a stable `code` that HTTP, exit codes, metrics and
documentation share.
"""

from typing import ClassVar


class LucioleError(Exception):
    """The root of every error that Luciole raises on purpose."""

    code: ClassVar[str] = "error"  #: stable, snake_case; never reused for another meaning
    exit_code: ClassVar[int] = 1  #: what the command line exits with


class Rejected(LucioleError):
    """The request itself is wrong; repeating it unchanged can't help."""

    code = "rejected"
    exit_code = 2


class InvalidValue(Rejected):
    """A field has a value that it can't have."""

    code = "invalid_value"


class InvalidTrigger(Rejected):
    """A trigger can't be understood, is ambiguous, or can never fire."""

    code = "invalid_trigger"


class InvalidPayload(Rejected):
    """An argument or a result can't be encoded or decoded."""

    code = "invalid_payload"


class PayloadTooLarge(Rejected):
    """A payload or a result is over its limit."""

    code = "payload_too_large"


class UnknownHandler(Rejected):
    """No handler has this name here."""

    code = "unknown_handler"


class NotFound(Rejected):
    """What the request names does not exist."""

    code = "not_found"


class AuthenticationFailed(Rejected):
    """The shared token of an executor or a client is missing or wrong."""

    code = "authentication_failed"


class ProtocolMismatch(Rejected):
    """The two ends of a connection speak versions that do not overlap."""

    code = "protocol_mismatch"


class MissingExtra(Rejected):
    """An optional dependency is needed that is not installed."""

    code = "missing_extra"


class Unsupported(Rejected):
    """This store or platform can't do what was asked."""

    code = "unsupported"


class Conflict(LucioleError):
    """The request was fine, but the state has moved on."""

    code = "conflict"
    exit_code = 3


class FenceError(Conflict):
    """The lease is no longer the caller's; nothing of the guarded write was written."""

    code = "fence"


class AlreadyExists(Conflict):
    """Something with this name exists and is somebody else's."""

    code = "already_exists"


class IllegalState(Conflict):
    """The present state does not allow the move."""

    code = "illegal_state"


class ExecutionFailed(Conflict):
    """The awaited execution ended in another state than `succeeded`."""

    code = "execution_failed"


class Unavailable(LucioleError):
    """Something needed is down or too busy; the same request may succeed later."""

    code = "unavailable"
    exit_code = 4


class StoreUnavailable(Unavailable):
    """The store can't be reached or refuses work; nothing was written."""

    code = "store_unavailable"


class StoreFull(Unavailable):
    """The store's disk is full; nothing was written."""

    code = "store_full"


class OutcomeUnknown(Unavailable):
    """The connection broke while a commit was under way; repeat the same call to learn what became of it."""

    code = "outcome_unknown"


class NoNode(Unavailable):
    """No node answers."""

    code = "no_node"


class ResultTimeout(Unavailable):
    """The awaited execution is not terminal yet; it goes on."""

    code = "result_timeout"


class Fatal(LucioleError):
    """The process can't go on safely; somebody has to repair something first."""

    code = "fatal"
    exit_code = 5


class SchemaMismatch(Fatal):
    """The store's schema is older or newer than this version can use."""

    code = "schema_mismatch"


class StoreCorrupt(Fatal):
    """The store holds something that can't be: a missing lease row, a changed migration, a shard mismatch."""

    code = "store_corrupt"


class ClockSkew(Fatal):
    """This host's clock is absurdly far from the store's."""

    code = "clock_skew"
