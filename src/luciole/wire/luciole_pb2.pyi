from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunIn(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_IN_UNSET: _ClassVar[RunIn]
    RUN_IN_ASYNC: _ClassVar[RunIn]
    RUN_IN_THREAD: _ClassVar[RunIn]
    RUN_IN_PROCESS: _ClassVar[RunIn]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSET: _ClassVar[Outcome]
    OUTCOME_SUCCEEDED: _ClassVar[Outcome]
    OUTCOME_FAILED: _ClassVar[Outcome]
    OUTCOME_TIMED_OUT: _ClassVar[Outcome]
    OUTCOME_CANCELLED: _ClassVar[Outcome]
    OUTCOME_LOST: _ClassVar[Outcome]
    OUTCOME_RETURNED: _ClassVar[Outcome]
    OUTCOME_UNKNOWN_HANDLER: _ClassVar[Outcome]

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSET: _ClassVar[Verdict]
    VERDICT_DURABLE: _ClassVar[Verdict]
    VERDICT_STALE: _ClassVar[Verdict]
    VERDICT_INVALID: _ClassVar[Verdict]
RUN_IN_UNSET: RunIn
RUN_IN_ASYNC: RunIn
RUN_IN_THREAD: RunIn
RUN_IN_PROCESS: RunIn
OUTCOME_UNSET: Outcome
OUTCOME_SUCCEEDED: Outcome
OUTCOME_FAILED: Outcome
OUTCOME_TIMED_OUT: Outcome
OUTCOME_CANCELLED: Outcome
OUTCOME_LOST: Outcome
OUTCOME_RETURNED: Outcome
OUTCOME_UNKNOWN_HANDLER: Outcome
VERDICT_UNSET: Verdict
VERDICT_DURABLE: Verdict
VERDICT_STALE: Verdict
VERDICT_INVALID: Verdict

class Frame(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    def __init__(self, messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("hello", "welcome", "refuse", "grant", "deliver", "acknowledge", "reports", "confirm", "beat", "beat_answer", "cancel", "demand", "drain")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    REFUSE_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    DELIVER_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    BEAT_FIELD_NUMBER: _ClassVar[int]
    BEAT_ANSWER_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    welcome: Welcome
    refuse: Refuse
    grant: Grant
    deliver: Deliver
    acknowledge: Tokens
    reports: Reports
    confirm: Confirm
    beat: Beat
    beat_answer: BeatAnswer
    cancel: Cancel
    demand: Demand
    drain: Drain
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., welcome: _Optional[_Union[Welcome, _Mapping]] = ..., refuse: _Optional[_Union[Refuse, _Mapping]] = ..., grant: _Optional[_Union[Grant, _Mapping]] = ..., deliver: _Optional[_Union[Deliver, _Mapping]] = ..., acknowledge: _Optional[_Union[Tokens, _Mapping]] = ..., reports: _Optional[_Union[Reports, _Mapping]] = ..., confirm: _Optional[_Union[Confirm, _Mapping]] = ..., beat: _Optional[_Union[Beat, _Mapping]] = ..., beat_answer: _Optional[_Union[BeatAnswer, _Mapping]] = ..., cancel: _Optional[_Union[Cancel, _Mapping]] = ..., demand: _Optional[_Union[Demand, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ...) -> None: ...

class Tokens(_message.Message):
    __slots__ = ("shard", "schedule_id", "fire_us", "part", "attempt")
    SHARD_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    FIRE_US_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    shard: _containers.RepeatedScalarFieldContainer[int]
    schedule_id: _containers.RepeatedScalarFieldContainer[int]
    fire_us: _containers.RepeatedScalarFieldContainer[int]
    part: _containers.RepeatedScalarFieldContainer[int]
    attempt: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, shard: _Optional[_Iterable[int]] = ..., schedule_id: _Optional[_Iterable[int]] = ..., fire_us: _Optional[_Iterable[int]] = ..., part: _Optional[_Iterable[int]] = ..., attempt: _Optional[_Iterable[int]] = ...) -> None: ...

class TextColumn(_message.Message):
    __slots__ = ("values", "index")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    index: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, values: _Optional[_Iterable[str]] = ..., index: _Optional[_Iterable[int]] = ...) -> None: ...

class BytesColumn(_message.Message):
    __slots__ = ("values", "index")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[bytes]
    index: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, values: _Optional[_Iterable[bytes]] = ..., index: _Optional[_Iterable[int]] = ...) -> None: ...

class SparseNumbers(_message.Message):
    __slots__ = ("at", "values")
    AT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    at: _containers.RepeatedScalarFieldContainer[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, at: _Optional[_Iterable[int]] = ..., values: _Optional[_Iterable[int]] = ...) -> None: ...

class SparseTexts(_message.Message):
    __slots__ = ("at", "values")
    AT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    at: _containers.RepeatedScalarFieldContainer[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, at: _Optional[_Iterable[int]] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class SparseBytes(_message.Message):
    __slots__ = ("at", "values")
    AT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    at: _containers.RepeatedScalarFieldContainer[int]
    values: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, at: _Optional[_Iterable[int]] = ..., values: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Label(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Held(_message.Message):
    __slots__ = ("tokens", "started_us", "progress")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    STARTED_US_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    tokens: Tokens
    started_us: SparseNumbers
    progress: SparseTexts
    def __init__(self, tokens: _Optional[_Union[Tokens, _Mapping]] = ..., started_us: _Optional[_Union[SparseNumbers, _Mapping]] = ..., progress: _Optional[_Union[SparseTexts, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol_min", "protocol_max", "executor_id", "namespace", "handlers", "slots", "labels", "held", "token", "host", "pid")
    PROTOCOL_MIN_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MAX_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    HANDLERS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    protocol_min: int
    protocol_max: int
    executor_id: str
    namespace: str
    handlers: _containers.RepeatedScalarFieldContainer[str]
    slots: int
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    held: Held
    token: str
    host: str
    pid: int
    def __init__(self, protocol_min: _Optional[int] = ..., protocol_max: _Optional[int] = ..., executor_id: _Optional[str] = ..., namespace: _Optional[str] = ..., handlers: _Optional[_Iterable[str]] = ..., slots: _Optional[int] = ..., labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ..., held: _Optional[_Union[Held, _Mapping]] = ..., token: _Optional[str] = ..., host: _Optional[str] = ..., pid: _Optional[int] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("protocol", "node_id", "now_us", "session_ttl_us", "peers", "kept")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    NOW_US_FIELD_NUMBER: _ClassVar[int]
    SESSION_TTL_US_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    node_id: str
    now_us: int
    session_ttl_us: int
    peers: _containers.RepeatedScalarFieldContainer[str]
    kept: Tokens
    def __init__(self, protocol: _Optional[int] = ..., node_id: _Optional[str] = ..., now_us: _Optional[int] = ..., session_ttl_us: _Optional[int] = ..., peers: _Optional[_Iterable[str]] = ..., kept: _Optional[_Union[Tokens, _Mapping]] = ...) -> None: ...

class Refuse(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("credits",)
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    credits: int
    def __init__(self, credits: _Optional[int] = ...) -> None: ...

class Deliver(_message.Message):
    __slots__ = ("tokens", "handler", "payload", "content_type", "fire_offset_us", "due_offset_us", "timeout_us", "deadline_us", "run_in")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    HANDLER_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    FIRE_OFFSET_US_FIELD_NUMBER: _ClassVar[int]
    DUE_OFFSET_US_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_US_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_US_FIELD_NUMBER: _ClassVar[int]
    RUN_IN_FIELD_NUMBER: _ClassVar[int]
    tokens: Tokens
    handler: TextColumn
    payload: BytesColumn
    content_type: TextColumn
    fire_offset_us: _containers.RepeatedScalarFieldContainer[int]
    due_offset_us: _containers.RepeatedScalarFieldContainer[int]
    timeout_us: SparseNumbers
    deadline_us: SparseNumbers
    run_in: _containers.RepeatedScalarFieldContainer[RunIn]
    def __init__(self, tokens: _Optional[_Union[Tokens, _Mapping]] = ..., handler: _Optional[_Union[TextColumn, _Mapping]] = ..., payload: _Optional[_Union[BytesColumn, _Mapping]] = ..., content_type: _Optional[_Union[TextColumn, _Mapping]] = ..., fire_offset_us: _Optional[_Iterable[int]] = ..., due_offset_us: _Optional[_Iterable[int]] = ..., timeout_us: _Optional[_Union[SparseNumbers, _Mapping]] = ..., deadline_us: _Optional[_Union[SparseNumbers, _Mapping]] = ..., run_in: _Optional[_Iterable[_Union[RunIn, str]]] = ...) -> None: ...

class Reports(_message.Message):
    __slots__ = ("tokens", "outcome", "finished_us", "started_us", "result", "result_type", "error", "retry_after_us", "not_retryable")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FINISHED_US_FIELD_NUMBER: _ClassVar[int]
    STARTED_US_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_US_FIELD_NUMBER: _ClassVar[int]
    NOT_RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    tokens: Tokens
    outcome: _containers.RepeatedScalarFieldContainer[Outcome]
    finished_us: _containers.RepeatedScalarFieldContainer[int]
    started_us: SparseNumbers
    result: SparseBytes
    result_type: SparseTexts
    error: SparseTexts
    retry_after_us: SparseNumbers
    not_retryable: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, tokens: _Optional[_Union[Tokens, _Mapping]] = ..., outcome: _Optional[_Iterable[_Union[Outcome, str]]] = ..., finished_us: _Optional[_Iterable[int]] = ..., started_us: _Optional[_Union[SparseNumbers, _Mapping]] = ..., result: _Optional[_Union[SparseBytes, _Mapping]] = ..., result_type: _Optional[_Union[SparseTexts, _Mapping]] = ..., error: _Optional[_Union[SparseTexts, _Mapping]] = ..., retry_after_us: _Optional[_Union[SparseNumbers, _Mapping]] = ..., not_retryable: _Optional[_Iterable[int]] = ...) -> None: ...

class Confirm(_message.Message):
    __slots__ = ("tokens", "verdict")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    tokens: Tokens
    verdict: _containers.RepeatedScalarFieldContainer[Verdict]
    def __init__(self, tokens: _Optional[_Union[Tokens, _Mapping]] = ..., verdict: _Optional[_Iterable[_Union[Verdict, str]]] = ...) -> None: ...

class Beat(_message.Message):
    __slots__ = ("held", "number")
    HELD_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    held: Held
    number: int
    def __init__(self, held: _Optional[_Union[Held, _Mapping]] = ..., number: _Optional[int] = ...) -> None: ...

class BeatAnswer(_message.Message):
    __slots__ = ("now_us", "peers", "kept", "number")
    NOW_US_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    now_us: int
    peers: _containers.RepeatedScalarFieldContainer[str]
    kept: Tokens
    number: int
    def __init__(self, now_us: _Optional[int] = ..., peers: _Optional[_Iterable[str]] = ..., kept: _Optional[_Union[Tokens, _Mapping]] = ..., number: _Optional[int] = ...) -> None: ...

class Cancel(_message.Message):
    __slots__ = ("tokens", "reason", "hard")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    HARD_FIELD_NUMBER: _ClassVar[int]
    tokens: Tokens
    reason: str
    hard: bool
    def __init__(self, tokens: _Optional[_Union[Tokens, _Mapping]] = ..., reason: _Optional[str] = ..., hard: _Optional[bool] = ...) -> None: ...

class Demand(_message.Message):
    __slots__ = ("waiting", "unused")
    WAITING_FIELD_NUMBER: _ClassVar[int]
    UNUSED_FIELD_NUMBER: _ClassVar[int]
    waiting: int
    unused: int
    def __init__(self, waiting: _Optional[int] = ..., unused: _Optional[int] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("grace_us",)
    GRACE_US_FIELD_NUMBER: _ClassVar[int]
    grace_us: int
    def __init__(self, grace_us: _Optional[int] = ...) -> None: ...
