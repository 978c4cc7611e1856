from tailrace.sdk.wire.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NewWorkload(_message.Message):
    __slots__ = ("function", "payload", "priority", "collection", "tenant", "key", "headers", "delay", "at", "dedupe_key", "expires_after", "submission_id")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    DEDUPE_KEY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AFTER_FIELD_NUMBER: _ClassVar[int]
    SUBMISSION_ID_FIELD_NUMBER: _ClassVar[int]
    function: str
    payload: bytes
    priority: int
    collection: str
    tenant: str
    key: str
    headers: _containers.RepeatedCompositeFieldContainer[_common_pb2.Header]
    delay: float
    at: float
    dedupe_key: str
    expires_after: float
    submission_id: str
    def __init__(self, function: _Optional[str] = ..., payload: _Optional[bytes] = ..., priority: _Optional[int] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., key: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[_common_pb2.Header, _Mapping]]] = ..., delay: _Optional[float] = ..., at: _Optional[float] = ..., dedupe_key: _Optional[str] = ..., expires_after: _Optional[float] = ..., submission_id: _Optional[str] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("workloads", "alike", "asks_direct")
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    ALIKE_FIELD_NUMBER: _ClassVar[int]
    ASKS_DIRECT_FIELD_NUMBER: _ClassVar[int]
    workloads: _containers.RepeatedCompositeFieldContainer[NewWorkload]
    alike: Alike
    asks_direct: bool
    def __init__(self, workloads: _Optional[_Iterable[_Union[NewWorkload, _Mapping]]] = ..., alike: _Optional[_Union[Alike, _Mapping]] = ..., asks_direct: _Optional[bool] = ...) -> None: ...

class Alike(_message.Message):
    __slots__ = ("forms", "payloads", "form_of", "token")
    FORMS_FIELD_NUMBER: _ClassVar[int]
    PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    FORM_OF_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    forms: _containers.RepeatedCompositeFieldContainer[NewWorkload]
    payloads: _containers.RepeatedScalarFieldContainer[bytes]
    form_of: _containers.RepeatedScalarFieldContainer[int]
    token: str
    def __init__(self, forms: _Optional[_Iterable[_Union[NewWorkload, _Mapping]]] = ..., payloads: _Optional[_Iterable[bytes]] = ..., form_of: _Optional[_Iterable[int]] = ..., token: _Optional[str] = ...) -> None: ...

class SubmitReply(_message.Message):
    __slots__ = ("ids", "duplicates", "spooled", "direct")
    IDS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    SPOOLED_FIELD_NUMBER: _ClassVar[int]
    DIRECT_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    duplicates: _containers.RepeatedScalarFieldContainer[int]
    spooled: bool
    direct: str
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., duplicates: _Optional[_Iterable[int]] = ..., spooled: _Optional[bool] = ..., direct: _Optional[str] = ...) -> None: ...

class NumberedSubmit(_message.Message):
    __slots__ = ("number", "request")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    number: int
    request: SubmitRequest
    def __init__(self, number: _Optional[int] = ..., request: _Optional[_Union[SubmitRequest, _Mapping]] = ...) -> None: ...

class NumberedAnswer(_message.Message):
    __slots__ = ("number", "reply", "refusal")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    number: int
    reply: SubmitReply
    refusal: Refusal
    def __init__(self, number: _Optional[int] = ..., reply: _Optional[_Union[SubmitReply, _Mapping]] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("error", "message", "retry_after")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    error: str
    message: str
    retry_after: float
    def __init__(self, error: _Optional[str] = ..., message: _Optional[str] = ..., retry_after: _Optional[float] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ("ids", "tries")
    IDS_FIELD_NUMBER: _ClassVar[int]
    TRIES_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    tries: bool
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., tries: _Optional[bool] = ...) -> None: ...

class FindRequest(_message.Message):
    __slots__ = ("function", "tenant", "states", "key", "since", "until", "after", "limit")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    function: str
    tenant: str
    states: _containers.RepeatedScalarFieldContainer[str]
    key: str
    since: float
    until: float
    after: str
    limit: int
    def __init__(self, function: _Optional[str] = ..., tenant: _Optional[str] = ..., states: _Optional[_Iterable[str]] = ..., key: _Optional[str] = ..., since: _Optional[float] = ..., until: _Optional[float] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class FindReply(_message.Message):
    __slots__ = ("statuses", "after")
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    statuses: _containers.RepeatedCompositeFieldContainer[WorkloadStatus]
    after: str
    def __init__(self, statuses: _Optional[_Iterable[_Union[WorkloadStatus, _Mapping]]] = ..., after: _Optional[str] = ...) -> None: ...

class WorkloadStatus(_message.Message):
    __slots__ = ("id", "known", "state", "function", "attempts", "crashes", "created_at", "due_at", "ended_at", "reason", "progress", "priority", "collection", "tenant", "tries")
    ID_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CRASHES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    TRIES_FIELD_NUMBER: _ClassVar[int]
    id: str
    known: bool
    state: str
    function: str
    attempts: int
    crashes: int
    created_at: float
    due_at: float
    ended_at: float
    reason: str
    progress: str
    priority: int
    collection: str
    tenant: str
    tries: _containers.RepeatedCompositeFieldContainer[Try]
    def __init__(self, id: _Optional[str] = ..., known: _Optional[bool] = ..., state: _Optional[str] = ..., function: _Optional[str] = ..., attempts: _Optional[int] = ..., crashes: _Optional[int] = ..., created_at: _Optional[float] = ..., due_at: _Optional[float] = ..., ended_at: _Optional[float] = ..., reason: _Optional[str] = ..., progress: _Optional[str] = ..., priority: _Optional[int] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., tries: _Optional[_Iterable[_Union[Try, _Mapping]]] = ...) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("statuses",)
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    statuses: _containers.RepeatedCompositeFieldContainer[WorkloadStatus]
    def __init__(self, statuses: _Optional[_Iterable[_Union[WorkloadStatus, _Mapping]]] = ...) -> None: ...

class ResultRequest(_message.Message):
    __slots__ = ("id", "wait")
    ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    id: str
    wait: float
    def __init__(self, id: _Optional[str] = ..., wait: _Optional[float] = ...) -> None: ...

class ResultReply(_message.Message):
    __slots__ = ("status", "has_result", "result")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    HAS_RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    status: WorkloadStatus
    has_result: bool
    result: bytes
    def __init__(self, status: _Optional[_Union[WorkloadStatus, _Mapping]] = ..., has_result: _Optional[bool] = ..., result: _Optional[bytes] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("ids", "who")
    IDS_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    who: str
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., who: _Optional[str] = ...) -> None: ...

class CancelReply(_message.Message):
    __slots__ = ("outcomes",)
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, outcomes: _Optional[_Iterable[str]] = ...) -> None: ...

class RegisterFunctionsRequest(_message.Message):
    __slots__ = ("worker", "functions")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    worker: str
    functions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Function]
    def __init__(self, worker: _Optional[str] = ..., functions: _Optional[_Iterable[_Union[_common_pb2.Function, _Mapping]]] = ...) -> None: ...

class RegisterFunctionsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TellFailureRequest(_message.Message):
    __slots__ = ("part", "why", "times")
    PART_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    part: str
    why: str
    times: int
    def __init__(self, part: _Optional[str] = ..., why: _Optional[str] = ..., times: _Optional[int] = ...) -> None: ...

class TellFailureReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListFunctionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListFunctionsReply(_message.Message):
    __slots__ = ("functions",)
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    functions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Function]
    def __init__(self, functions: _Optional[_Iterable[_Union[_common_pb2.Function, _Mapping]]] = ...) -> None: ...

class Gate(_message.Message):
    __slots__ = ("function", "collection", "action", "who", "why", "since", "version")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    function: str
    collection: str
    action: str
    who: str
    why: str
    since: float
    version: int
    def __init__(self, function: _Optional[str] = ..., collection: _Optional[str] = ..., action: _Optional[str] = ..., who: _Optional[str] = ..., why: _Optional[str] = ..., since: _Optional[float] = ..., version: _Optional[int] = ...) -> None: ...

class SetGateRequest(_message.Message):
    __slots__ = ("gate",)
    GATE_FIELD_NUMBER: _ClassVar[int]
    gate: Gate
    def __init__(self, gate: _Optional[_Union[Gate, _Mapping]] = ...) -> None: ...

class Quota(_message.Message):
    __slots__ = ("function", "concurrency", "rate", "burst", "weight")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    function: str
    concurrency: int
    rate: float
    burst: float
    weight: float
    def __init__(self, function: _Optional[str] = ..., concurrency: _Optional[int] = ..., rate: _Optional[float] = ..., burst: _Optional[float] = ..., weight: _Optional[float] = ...) -> None: ...

class SetQuotaRequest(_message.Message):
    __slots__ = ("quota",)
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    quota: Quota
    def __init__(self, quota: _Optional[_Union[Quota, _Mapping]] = ...) -> None: ...

class ControlReply(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ControlSnapshot(_message.Message):
    __slots__ = ("version", "gates", "quotas", "functions")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    GATES_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    version: int
    gates: _containers.RepeatedCompositeFieldContainer[Gate]
    quotas: _containers.RepeatedCompositeFieldContainer[Quota]
    functions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Function]
    def __init__(self, version: _Optional[int] = ..., gates: _Optional[_Iterable[_Union[Gate, _Mapping]]] = ..., quotas: _Optional[_Iterable[_Union[Quota, _Mapping]]] = ..., functions: _Optional[_Iterable[_Union[_common_pb2.Function, _Mapping]]] = ...) -> None: ...

class DeadFilter(_message.Message):
    __slots__ = ("ids", "function", "tailer", "collection", "tenant", "reason", "since", "until", "attempts", "crashes")
    IDS_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    TAILER_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CRASHES_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    function: str
    tailer: str
    collection: str
    tenant: str
    reason: str
    since: float
    until: float
    attempts: int
    crashes: int
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., function: _Optional[str] = ..., tailer: _Optional[str] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., reason: _Optional[str] = ..., since: _Optional[float] = ..., until: _Optional[float] = ..., attempts: _Optional[int] = ..., crashes: _Optional[int] = ...) -> None: ...

class ListDeadRequest(_message.Message):
    __slots__ = ("filter", "limit", "id", "after")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    filter: DeadFilter
    limit: int
    id: str
    after: int
    def __init__(self, filter: _Optional[_Union[DeadFilter, _Mapping]] = ..., limit: _Optional[int] = ..., id: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class Death(_message.Message):
    __slots__ = ("died_at", "outcome", "reason", "attempts", "crashes", "progress")
    DIED_AT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CRASHES_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    died_at: float
    outcome: str
    reason: str
    attempts: int
    crashes: int
    progress: str
    def __init__(self, died_at: _Optional[float] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ..., attempts: _Optional[int] = ..., crashes: _Optional[int] = ..., progress: _Optional[str] = ...) -> None: ...

class Past(_message.Message):
    __slots__ = ("tailer", "id", "first_seen", "redrives", "deaths")
    TAILER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEEN_FIELD_NUMBER: _ClassVar[int]
    REDRIVES_FIELD_NUMBER: _ClassVar[int]
    DEATHS_FIELD_NUMBER: _ClassVar[int]
    tailer: str
    id: str
    first_seen: float
    redrives: int
    deaths: _containers.RepeatedCompositeFieldContainer[Death]
    def __init__(self, tailer: _Optional[str] = ..., id: _Optional[str] = ..., first_seen: _Optional[float] = ..., redrives: _Optional[int] = ..., deaths: _Optional[_Iterable[_Union[Death, _Mapping]]] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("id", "function", "tailer", "outcome", "reason", "attempts", "crashes", "died_at", "payload", "priority", "collection", "tenant", "first_seen", "key", "headers", "progress", "past", "number", "partition", "position", "tries")
    ID_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    TAILER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CRASHES_FIELD_NUMBER: _ClassVar[int]
    DIED_AT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEEN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PAST_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TRIES_FIELD_NUMBER: _ClassVar[int]
    id: str
    function: str
    tailer: str
    outcome: str
    reason: str
    attempts: int
    crashes: int
    died_at: float
    payload: bytes
    priority: int
    collection: str
    tenant: str
    first_seen: float
    key: str
    headers: _containers.RepeatedCompositeFieldContainer[_common_pb2.Header]
    progress: str
    past: Past
    number: int
    partition: str
    position: int
    tries: _containers.RepeatedCompositeFieldContainer[Try]
    def __init__(self, id: _Optional[str] = ..., function: _Optional[str] = ..., tailer: _Optional[str] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ..., attempts: _Optional[int] = ..., crashes: _Optional[int] = ..., died_at: _Optional[float] = ..., payload: _Optional[bytes] = ..., priority: _Optional[int] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., first_seen: _Optional[float] = ..., key: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[_common_pb2.Header, _Mapping]]] = ..., progress: _Optional[str] = ..., past: _Optional[_Union[Past, _Mapping]] = ..., number: _Optional[int] = ..., partition: _Optional[str] = ..., position: _Optional[int] = ..., tries: _Optional[_Iterable[_Union[Try, _Mapping]]] = ...) -> None: ...

class Try(_message.Message):
    __slots__ = ("at", "outcome", "reason")
    AT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    at: float
    outcome: str
    reason: str
    def __init__(self, at: _Optional[float] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ListDeadReply(_message.Message):
    __slots__ = ("letters", "total")
    LETTERS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    letters: _containers.RepeatedCompositeFieldContainer[DeadLetter]
    total: int
    def __init__(self, letters: _Optional[_Iterable[_Union[DeadLetter, _Mapping]]] = ..., total: _Optional[int] = ...) -> None: ...

class CountDeadRequest(_message.Message):
    __slots__ = ("filter",)
    FILTER_FIELD_NUMBER: _ClassVar[int]
    filter: DeadFilter
    def __init__(self, filter: _Optional[_Union[DeadFilter, _Mapping]] = ...) -> None: ...

class DeadCount(_message.Message):
    __slots__ = ("function", "count", "worn", "known")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    WORN_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    function: str
    count: int
    worn: int
    known: bool
    def __init__(self, function: _Optional[str] = ..., count: _Optional[int] = ..., worn: _Optional[int] = ..., known: _Optional[bool] = ...) -> None: ...

class CountDeadReply(_message.Message):
    __slots__ = ("counts", "max_redrives")
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    MAX_REDRIVES_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.RepeatedCompositeFieldContainer[DeadCount]
    max_redrives: int
    def __init__(self, counts: _Optional[_Iterable[_Union[DeadCount, _Mapping]]] = ..., max_redrives: _Optional[int] = ...) -> None: ...

class RedriveDeadRequest(_message.Message):
    __slots__ = ("filter", "limit", "after")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    filter: DeadFilter
    limit: int
    after: int
    def __init__(self, filter: _Optional[_Union[DeadFilter, _Mapping]] = ..., limit: _Optional[int] = ..., after: _Optional[int] = ...) -> None: ...

class Redriven(_message.Message):
    __slots__ = ("id", "function", "workload", "refused")
    ID_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    id: str
    function: str
    workload: str
    refused: str
    def __init__(self, id: _Optional[str] = ..., function: _Optional[str] = ..., workload: _Optional[str] = ..., refused: _Optional[str] = ...) -> None: ...

class RedriveDeadReply(_message.Message):
    __slots__ = ("letters", "next")
    LETTERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    letters: _containers.RepeatedCompositeFieldContainer[Redriven]
    next: int
    def __init__(self, letters: _Optional[_Iterable[_Union[Redriven, _Mapping]]] = ..., next: _Optional[int] = ...) -> None: ...

class PurgeDeadRequest(_message.Message):
    __slots__ = ("filter", "limit")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    filter: DeadFilter
    limit: int
    def __init__(self, filter: _Optional[_Union[DeadFilter, _Mapping]] = ..., limit: _Optional[int] = ...) -> None: ...

class PurgeDeadReply(_message.Message):
    __slots__ = ("purged",)
    PURGED_FIELD_NUMBER: _ClassVar[int]
    purged: _containers.RepeatedCompositeFieldContainer[CountByName]
    def __init__(self, purged: _Optional[_Iterable[_Union[CountByName, _Mapping]]] = ...) -> None: ...

class AuditRequest(_message.Message):
    __slots__ = ("tailer", "partition", "first", "end")
    TAILER_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    tailer: str
    partition: str
    first: int
    end: int
    def __init__(self, tailer: _Optional[str] = ..., partition: _Optional[str] = ..., first: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class Audit(_message.Message):
    __slots__ = ("tailer", "partition", "first", "end", "counts", "missing", "doubled", "missing_count", "doubled_count", "faults", "items")
    TAILER_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    DOUBLED_FIELD_NUMBER: _ClassVar[int]
    MISSING_COUNT_FIELD_NUMBER: _ClassVar[int]
    DOUBLED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    tailer: str
    partition: str
    first: int
    end: int
    counts: _containers.RepeatedCompositeFieldContainer[CountByName]
    missing: _containers.RepeatedScalarFieldContainer[int]
    doubled: _containers.RepeatedScalarFieldContainer[int]
    missing_count: int
    doubled_count: int
    faults: _containers.RepeatedScalarFieldContainer[str]
    items: int
    def __init__(self, tailer: _Optional[str] = ..., partition: _Optional[str] = ..., first: _Optional[int] = ..., end: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[CountByName, _Mapping]]] = ..., missing: _Optional[_Iterable[int]] = ..., doubled: _Optional[_Iterable[int]] = ..., missing_count: _Optional[int] = ..., doubled_count: _Optional[int] = ..., faults: _Optional[_Iterable[str]] = ..., items: _Optional[int] = ...) -> None: ...

class AuditReply(_message.Message):
    __slots__ = ("audits",)
    AUDITS_FIELD_NUMBER: _ClassVar[int]
    audits: _containers.RepeatedCompositeFieldContainer[Audit]
    def __init__(self, audits: _Optional[_Iterable[_Union[Audit, _Mapping]]] = ...) -> None: ...

class PauseTailerRequest(_message.Message):
    __slots__ = ("tailer", "paused")
    TAILER_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    tailer: str
    paused: bool
    def __init__(self, tailer: _Optional[str] = ..., paused: _Optional[bool] = ...) -> None: ...

class PauseTailerReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SeekTailerRequest(_message.Message):
    __slots__ = ("tailer", "partition", "position", "edge", "time", "who", "why", "dry_run")
    TAILER_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    EDGE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    tailer: str
    partition: str
    position: int
    edge: str
    time: float
    who: str
    why: str
    dry_run: bool
    def __init__(self, tailer: _Optional[str] = ..., partition: _Optional[str] = ..., position: _Optional[int] = ..., edge: _Optional[str] = ..., time: _Optional[float] = ..., who: _Optional[str] = ..., why: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class SeekMove(_message.Message):
    __slots__ = ("partition", "before", "after", "dropped")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    partition: str
    before: int
    after: int
    dropped: int
    def __init__(self, partition: _Optional[str] = ..., before: _Optional[int] = ..., after: _Optional[int] = ..., dropped: _Optional[int] = ...) -> None: ...

class SeekTailerReply(_message.Message):
    __slots__ = ("moves",)
    MOVES_FIELD_NUMBER: _ClassVar[int]
    moves: _containers.RepeatedCompositeFieldContainer[SeekMove]
    def __init__(self, moves: _Optional[_Iterable[_Union[SeekMove, _Mapping]]] = ...) -> None: ...

class ReplayBound(_message.Message):
    __slots__ = ("position", "edge", "time")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    EDGE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    position: int
    edge: str
    time: float
    def __init__(self, position: _Optional[int] = ..., edge: _Optional[str] = ..., time: _Optional[float] = ...) -> None: ...

class StartReplayRequest(_message.Message):
    __slots__ = ("tailer", "partition", "begin", "end", "only", "rate", "priority", "who", "why", "dry_run")
    TAILER_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    ONLY_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    tailer: str
    partition: str
    begin: ReplayBound
    end: ReplayBound
    only: str
    rate: float
    priority: str
    who: str
    why: str
    dry_run: bool
    def __init__(self, tailer: _Optional[str] = ..., partition: _Optional[str] = ..., begin: _Optional[_Union[ReplayBound, _Mapping]] = ..., end: _Optional[_Union[ReplayBound, _Mapping]] = ..., only: _Optional[str] = ..., rate: _Optional[float] = ..., priority: _Optional[str] = ..., who: _Optional[str] = ..., why: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class ReplayStretch(_message.Message):
    __slots__ = ("partition", "first", "end", "items", "waiting", "ranges")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    partition: str
    first: int
    end: int
    items: int
    waiting: int
    ranges: int
    def __init__(self, partition: _Optional[str] = ..., first: _Optional[int] = ..., end: _Optional[int] = ..., items: _Optional[int] = ..., waiting: _Optional[int] = ..., ranges: _Optional[int] = ...) -> None: ...

class Replay(_message.Message):
    __slots__ = ("number", "tailer", "name", "stretches", "only", "rate", "priority", "who", "why", "created_at", "state", "ended_at", "items", "counts", "detail")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TAILER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STRETCHES_FIELD_NUMBER: _ClassVar[int]
    ONLY_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    number: int
    tailer: str
    name: str
    stretches: _containers.RepeatedCompositeFieldContainer[ReplayStretch]
    only: str
    rate: float
    priority: str
    who: str
    why: str
    created_at: float
    state: str
    ended_at: float
    items: int
    counts: _containers.RepeatedCompositeFieldContainer[CountByName]
    detail: str
    def __init__(self, number: _Optional[int] = ..., tailer: _Optional[str] = ..., name: _Optional[str] = ..., stretches: _Optional[_Iterable[_Union[ReplayStretch, _Mapping]]] = ..., only: _Optional[str] = ..., rate: _Optional[float] = ..., priority: _Optional[str] = ..., who: _Optional[str] = ..., why: _Optional[str] = ..., created_at: _Optional[float] = ..., state: _Optional[str] = ..., ended_at: _Optional[float] = ..., items: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[CountByName, _Mapping]]] = ..., detail: _Optional[str] = ...) -> None: ...

class ListReplaysRequest(_message.Message):
    __slots__ = ("number", "limit")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    number: int
    limit: int
    def __init__(self, number: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class ListReplaysReply(_message.Message):
    __slots__ = ("replays",)
    REPLAYS_FIELD_NUMBER: _ClassVar[int]
    replays: _containers.RepeatedCompositeFieldContainer[Replay]
    def __init__(self, replays: _Optional[_Iterable[_Union[Replay, _Mapping]]] = ...) -> None: ...

class ChangeReplayRequest(_message.Message):
    __slots__ = ("number", "what")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    number: int
    what: str
    def __init__(self, number: _Optional[int] = ..., what: _Optional[str] = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("name", "function", "payload", "cron", "every", "at", "timezone", "priority", "collection", "tenant", "overlap", "catch_up", "catch_up_max", "grace", "jitter", "starts", "until", "max_runs", "created_by", "created_at", "origin")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    EVERY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_MAX_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNS_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    name: str
    function: str
    payload: bytes
    cron: str
    every: float
    at: float
    timezone: str
    priority: str
    collection: str
    tenant: str
    overlap: str
    catch_up: str
    catch_up_max: int
    grace: float
    jitter: float
    starts: float
    until: float
    max_runs: int
    created_by: str
    created_at: float
    origin: str
    def __init__(self, name: _Optional[str] = ..., function: _Optional[str] = ..., payload: _Optional[bytes] = ..., cron: _Optional[str] = ..., every: _Optional[float] = ..., at: _Optional[float] = ..., timezone: _Optional[str] = ..., priority: _Optional[str] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., overlap: _Optional[str] = ..., catch_up: _Optional[str] = ..., catch_up_max: _Optional[int] = ..., grace: _Optional[float] = ..., jitter: _Optional[float] = ..., starts: _Optional[float] = ..., until: _Optional[float] = ..., max_runs: _Optional[int] = ..., created_by: _Optional[str] = ..., created_at: _Optional[float] = ..., origin: _Optional[str] = ...) -> None: ...

class PutScheduleRequest(_message.Message):
    __slots__ = ("schedule", "replace")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    replace: bool
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ..., replace: _Optional[bool] = ...) -> None: ...

class ListSchedulesRequest(_message.Message):
    __slots__ = ("name", "limit", "next", "last")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    name: str
    limit: int
    next: int
    last: int
    def __init__(self, name: _Optional[str] = ..., limit: _Optional[int] = ..., next: _Optional[int] = ..., last: _Optional[int] = ...) -> None: ...

class ListSchedulesReply(_message.Message):
    __slots__ = ("schedules",)
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[ScheduleState]
    def __init__(self, schedules: _Optional[_Iterable[_Union[ScheduleState, _Mapping]]] = ...) -> None: ...

class ChangeScheduleRequest(_message.Message):
    __slots__ = ("name", "what")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    name: str
    what: str
    def __init__(self, name: _Optional[str] = ..., what: _Optional[str] = ...) -> None: ...

class ScheduleRun(_message.Message):
    __slots__ = ("position", "instant", "fired_at", "by_hand")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    INSTANT_FIELD_NUMBER: _ClassVar[int]
    FIRED_AT_FIELD_NUMBER: _ClassVar[int]
    BY_HAND_FIELD_NUMBER: _ClassVar[int]
    position: int
    instant: float
    fired_at: float
    by_hand: bool
    def __init__(self, position: _Optional[int] = ..., instant: _Optional[float] = ..., fired_at: _Optional[float] = ..., by_hand: _Optional[bool] = ...) -> None: ...

class ScheduleState(_message.Message):
    __slots__ = ("schedule", "paused", "over", "runs", "passed_over", "next", "last")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    PASSED_OVER_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    paused: bool
    over: bool
    runs: int
    passed_over: int
    next: _containers.RepeatedScalarFieldContainer[float]
    last: _containers.RepeatedCompositeFieldContainer[ScheduleRun]
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ..., paused: _Optional[bool] = ..., over: _Optional[bool] = ..., runs: _Optional[int] = ..., passed_over: _Optional[int] = ..., next: _Optional[_Iterable[float]] = ..., last: _Optional[_Iterable[_Union[ScheduleRun, _Mapping]]] = ...) -> None: ...

class ListDropsRequest(_message.Message):
    __slots__ = ("tailer", "limit", "skip")
    TAILER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SKIP_FIELD_NUMBER: _ClassVar[int]
    tailer: str
    limit: int
    skip: int
    def __init__(self, tailer: _Optional[str] = ..., limit: _Optional[int] = ..., skip: _Optional[int] = ...) -> None: ...

class Drop(_message.Message):
    __slots__ = ("tailer", "partition", "first", "last", "items", "cause", "version", "who", "why", "at")
    TAILER_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    tailer: str
    partition: str
    first: int
    last: int
    items: int
    cause: int
    version: int
    who: str
    why: str
    at: float
    def __init__(self, tailer: _Optional[str] = ..., partition: _Optional[str] = ..., first: _Optional[int] = ..., last: _Optional[int] = ..., items: _Optional[int] = ..., cause: _Optional[int] = ..., version: _Optional[int] = ..., who: _Optional[str] = ..., why: _Optional[str] = ..., at: _Optional[float] = ...) -> None: ...

class ListDropsReply(_message.Message):
    __slots__ = ("rows",)
    ROWS_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[Drop]
    def __init__(self, rows: _Optional[_Iterable[_Union[Drop, _Mapping]]] = ...) -> None: ...

class OverviewRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TailerOverview(_message.Message):
    __slots__ = ("name", "kind", "state", "read", "settled", "parked", "dead", "in_flight", "held", "lag", "detail", "since", "healthy", "idle", "cause", "why", "stale_writes", "unaccounted", "dropped", "lost", "classes", "unreadable")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    PARKED_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    HEALTHY_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    STALE_WRITES_FIELD_NUMBER: _ClassVar[int]
    UNACCOUNTED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    state: str
    read: int
    settled: int
    parked: int
    dead: int
    in_flight: int
    held: int
    lag: int
    detail: str
    since: float
    healthy: bool
    idle: float
    cause: str
    why: str
    stale_writes: int
    unaccounted: int
    dropped: int
    lost: int
    classes: _containers.RepeatedCompositeFieldContainer[CountByName]
    unreadable: int
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., state: _Optional[str] = ..., read: _Optional[int] = ..., settled: _Optional[int] = ..., parked: _Optional[int] = ..., dead: _Optional[int] = ..., in_flight: _Optional[int] = ..., held: _Optional[int] = ..., lag: _Optional[int] = ..., detail: _Optional[str] = ..., since: _Optional[float] = ..., healthy: _Optional[bool] = ..., idle: _Optional[float] = ..., cause: _Optional[str] = ..., why: _Optional[str] = ..., stale_writes: _Optional[int] = ..., unaccounted: _Optional[int] = ..., dropped: _Optional[int] = ..., lost: _Optional[int] = ..., classes: _Optional[_Iterable[_Union[CountByName, _Mapping]]] = ..., unreadable: _Optional[int] = ...) -> None: ...

class CountByName(_message.Message):
    __slots__ = ("name", "count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class ReplayOverview(_message.Message):
    __slots__ = ("name", "tailer", "state", "items", "counts")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TAILER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    tailer: str
    state: str
    items: int
    counts: _containers.RepeatedCompositeFieldContainer[CountByName]
    def __init__(self, name: _Optional[str] = ..., tailer: _Optional[str] = ..., state: _Optional[str] = ..., items: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[CountByName, _Mapping]]] = ...) -> None: ...

class OverviewReply(_message.Message):
    __slots__ = ("queue", "tailers", "delay", "dead_letters", "spool", "replays", "levels", "backlogs", "alerts", "ended_peers")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TAILERS_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    SPOOL_FIELD_NUMBER: _ClassVar[int]
    REPLAYS_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    BACKLOGS_FIELD_NUMBER: _ClassVar[int]
    ALERTS_FIELD_NUMBER: _ClassVar[int]
    ENDED_PEERS_FIELD_NUMBER: _ClassVar[int]
    queue: _containers.RepeatedCompositeFieldContainer[CountByName]
    tailers: _containers.RepeatedCompositeFieldContainer[TailerOverview]
    delay: _containers.RepeatedCompositeFieldContainer[CountByName]
    dead_letters: int
    spool: SpoolOverview
    replays: _containers.RepeatedCompositeFieldContainer[ReplayOverview]
    levels: _containers.RepeatedCompositeFieldContainer[LevelOverview]
    backlogs: _containers.RepeatedCompositeFieldContainer[Backlog]
    alerts: _containers.RepeatedCompositeFieldContainer[Alert]
    ended_peers: _containers.RepeatedCompositeFieldContainer[CountByName]
    def __init__(self, queue: _Optional[_Iterable[_Union[CountByName, _Mapping]]] = ..., tailers: _Optional[_Iterable[_Union[TailerOverview, _Mapping]]] = ..., delay: _Optional[_Iterable[_Union[CountByName, _Mapping]]] = ..., dead_letters: _Optional[int] = ..., spool: _Optional[_Union[SpoolOverview, _Mapping]] = ..., replays: _Optional[_Iterable[_Union[ReplayOverview, _Mapping]]] = ..., levels: _Optional[_Iterable[_Union[LevelOverview, _Mapping]]] = ..., backlogs: _Optional[_Iterable[_Union[Backlog, _Mapping]]] = ..., alerts: _Optional[_Iterable[_Union[Alert, _Mapping]]] = ..., ended_peers: _Optional[_Iterable[_Union[CountByName, _Mapping]]] = ...) -> None: ...

class LevelOverview(_message.Message):
    __slots__ = ("priority", "waited", "waited_allowed", "waited_by", "attempts", "attempts_allowed", "attempts_by", "beyond")
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WAITED_FIELD_NUMBER: _ClassVar[int]
    WAITED_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    WAITED_BY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_BY_FIELD_NUMBER: _ClassVar[int]
    BEYOND_FIELD_NUMBER: _ClassVar[int]
    priority: str
    waited: float
    waited_allowed: float
    waited_by: str
    attempts: int
    attempts_allowed: int
    attempts_by: str
    beyond: int
    def __init__(self, priority: _Optional[str] = ..., waited: _Optional[float] = ..., waited_allowed: _Optional[float] = ..., waited_by: _Optional[str] = ..., attempts: _Optional[int] = ..., attempts_allowed: _Optional[int] = ..., attempts_by: _Optional[str] = ..., beyond: _Optional[int] = ...) -> None: ...

class Backlog(_message.Message):
    __slots__ = ("name", "items", "growth", "watched", "empty_in")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    GROWTH_FIELD_NUMBER: _ClassVar[int]
    WATCHED_FIELD_NUMBER: _ClassVar[int]
    EMPTY_IN_FIELD_NUMBER: _ClassVar[int]
    name: str
    items: int
    growth: float
    watched: float
    empty_in: float
    def __init__(self, name: _Optional[str] = ..., items: _Optional[int] = ..., growth: _Optional[float] = ..., watched: _Optional[float] = ..., empty_in: _Optional[float] = ...) -> None: ...

class Alert(_message.Message):
    __slots__ = ("code", "subject", "since", "what", "todo")
    CODE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    TODO_FIELD_NUMBER: _ClassVar[int]
    code: str
    subject: str
    since: float
    what: str
    todo: str
    def __init__(self, code: _Optional[str] = ..., subject: _Optional[str] = ..., since: _Optional[float] = ..., what: _Optional[str] = ..., todo: _Optional[str] = ...) -> None: ...

class SpoolOverview(_message.Message):
    __slots__ = ("state", "items", "size", "age", "taken", "brought", "refused")
    STATE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    BROUGHT_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    state: str
    items: int
    size: int
    age: float
    taken: int
    brought: int
    refused: int
    def __init__(self, state: _Optional[str] = ..., items: _Optional[int] = ..., size: _Optional[int] = ..., age: _Optional[float] = ..., taken: _Optional[int] = ..., brought: _Optional[int] = ..., refused: _Optional[int] = ...) -> None: ...
