from tailrace.wire.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NewWorkload(_message.Message):
    __slots__ = ("function", "payload", "priority", "collection", "tenant", "key", "headers", "delay", "at", "dedupe_key", "expires_after", "submission_id", "on_done")
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
    ON_DONE_FIELD_NUMBER: _ClassVar[int]
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
    on_done: str
    def __init__(self, function: _Optional[str] = ..., payload: _Optional[bytes] = ..., priority: _Optional[int] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., key: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[_common_pb2.Header, _Mapping]]] = ..., delay: _Optional[float] = ..., at: _Optional[float] = ..., dedupe_key: _Optional[str] = ..., expires_after: _Optional[float] = ..., submission_id: _Optional[str] = ..., on_done: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("error", "message", "retry_after", "of_tenant")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    OF_TENANT_FIELD_NUMBER: _ClassVar[int]
    error: str
    message: str
    retry_after: float
    of_tenant: bool
    def __init__(self, error: _Optional[str] = ..., message: _Optional[str] = ..., retry_after: _Optional[float] = ..., of_tenant: _Optional[bool] = ...) -> None: ...

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
    __slots__ = ("id", "known", "state", "function", "attempts", "crashes", "created_at", "due_at", "ended_at", "reason", "progress", "priority", "collection", "tenant", "tries", "worker", "heard_at", "created_by")
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
    WORKER_FIELD_NUMBER: _ClassVar[int]
    HEARD_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
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
    worker: str
    heard_at: float
    created_by: str
    def __init__(self, id: _Optional[str] = ..., known: _Optional[bool] = ..., state: _Optional[str] = ..., function: _Optional[str] = ..., attempts: _Optional[int] = ..., crashes: _Optional[int] = ..., created_at: _Optional[float] = ..., due_at: _Optional[float] = ..., ended_at: _Optional[float] = ..., reason: _Optional[str] = ..., progress: _Optional[str] = ..., priority: _Optional[int] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., tries: _Optional[_Iterable[_Union[Try, _Mapping]]] = ..., worker: _Optional[str] = ..., heard_at: _Optional[float] = ..., created_by: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("ids", "who", "why")
    IDS_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    who: str
    why: str
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., who: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class CancelReply(_message.Message):
    __slots__ = ("outcomes",)
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, outcomes: _Optional[_Iterable[str]] = ...) -> None: ...

class RescheduleRequest(_message.Message):
    __slots__ = ("id", "delay", "at", "priority", "who", "why")
    ID_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    id: str
    delay: float
    at: float
    priority: int
    who: str
    why: str
    def __init__(self, id: _Optional[str] = ..., delay: _Optional[float] = ..., at: _Optional[float] = ..., priority: _Optional[int] = ..., who: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class RescheduleReply(_message.Message):
    __slots__ = ("outcome", "why", "status")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    outcome: str
    why: str
    status: WorkloadStatus
    def __init__(self, outcome: _Optional[str] = ..., why: _Optional[str] = ..., status: _Optional[_Union[WorkloadStatus, _Mapping]] = ...) -> None: ...

class PeekRequest(_message.Message):
    __slots__ = ("id", "max_bytes")
    ID_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    id: str
    max_bytes: int
    def __init__(self, id: _Optional[str] = ..., max_bytes: _Optional[int] = ...) -> None: ...

class PeekReply(_message.Message):
    __slots__ = ("status", "payload", "size", "key", "headers", "expires_at", "behind")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    status: WorkloadStatus
    payload: bytes
    size: int
    key: str
    headers: _containers.RepeatedCompositeFieldContainer[_common_pb2.Header]
    expires_at: float
    behind: str
    def __init__(self, status: _Optional[_Union[WorkloadStatus, _Mapping]] = ..., payload: _Optional[bytes] = ..., size: _Optional[int] = ..., key: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[_common_pb2.Header, _Mapping]]] = ..., expires_at: _Optional[float] = ..., behind: _Optional[str] = ...) -> None: ...

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

class ListFunctionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListFunctionsReply(_message.Message):
    __slots__ = ("functions",)
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    functions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Function]
    def __init__(self, functions: _Optional[_Iterable[_Union[_common_pb2.Function, _Mapping]]] = ...) -> None: ...

class Gate(_message.Message):
    __slots__ = ("function", "collection", "action", "who", "why", "since", "version", "tenant", "downstream", "source", "until")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    DOWNSTREAM_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    function: str
    collection: str
    action: str
    who: str
    why: str
    since: float
    version: int
    tenant: str
    downstream: str
    source: str
    until: float
    def __init__(self, function: _Optional[str] = ..., collection: _Optional[str] = ..., action: _Optional[str] = ..., who: _Optional[str] = ..., why: _Optional[str] = ..., since: _Optional[float] = ..., version: _Optional[int] = ..., tenant: _Optional[str] = ..., downstream: _Optional[str] = ..., source: _Optional[str] = ..., until: _Optional[float] = ...) -> None: ...

class Quota(_message.Message):
    __slots__ = ("function", "concurrency", "rate", "burst", "weight", "collection", "tenant", "downstream", "per", "max_values", "downstreams", "reserve", "keeps", "opportunistic", "adaptive", "highest", "units")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    DOWNSTREAM_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    MAX_VALUES_FIELD_NUMBER: _ClassVar[int]
    DOWNSTREAMS_FIELD_NUMBER: _ClassVar[int]
    RESERVE_FIELD_NUMBER: _ClassVar[int]
    KEEPS_FIELD_NUMBER: _ClassVar[int]
    OPPORTUNISTIC_FIELD_NUMBER: _ClassVar[int]
    ADAPTIVE_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    function: str
    concurrency: int
    rate: float
    burst: float
    weight: float
    collection: str
    tenant: str
    downstream: str
    per: str
    max_values: int
    downstreams: _containers.RepeatedScalarFieldContainer[str]
    reserve: float
    keeps: bool
    opportunistic: bool
    adaptive: Adaptive
    highest: str
    units: _containers.RepeatedCompositeFieldContainer[UnitRate]
    def __init__(self, function: _Optional[str] = ..., concurrency: _Optional[int] = ..., rate: _Optional[float] = ..., burst: _Optional[float] = ..., weight: _Optional[float] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., downstream: _Optional[str] = ..., per: _Optional[str] = ..., max_values: _Optional[int] = ..., downstreams: _Optional[_Iterable[str]] = ..., reserve: _Optional[float] = ..., keeps: _Optional[bool] = ..., opportunistic: _Optional[bool] = ..., adaptive: _Optional[_Union[Adaptive, _Mapping]] = ..., highest: _Optional[str] = ..., units: _Optional[_Iterable[_Union[UnitRate, _Mapping]]] = ...) -> None: ...

class UnitRate(_message.Message):
    __slots__ = ("unit", "rate", "burst", "estimate")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    unit: str
    rate: float
    burst: float
    estimate: float
    def __init__(self, unit: _Optional[str] = ..., rate: _Optional[float] = ..., burst: _Optional[float] = ..., estimate: _Optional[float] = ...) -> None: ...

class Adaptive(_message.Message):
    __slots__ = ("on", "floor", "ceiling", "increase", "decrease", "slow_start", "probe_timeout", "retries")
    ON_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    CEILING_FIELD_NUMBER: _ClassVar[int]
    INCREASE_FIELD_NUMBER: _ClassVar[int]
    DECREASE_FIELD_NUMBER: _ClassVar[int]
    SLOW_START_FIELD_NUMBER: _ClassVar[int]
    PROBE_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    on: bool
    floor: float
    ceiling: float
    increase: float
    decrease: float
    slow_start: float
    probe_timeout: float
    retries: float
    def __init__(self, on: _Optional[bool] = ..., floor: _Optional[float] = ..., ceiling: _Optional[float] = ..., increase: _Optional[float] = ..., decrease: _Optional[float] = ..., slow_start: _Optional[float] = ..., probe_timeout: _Optional[float] = ..., retries: _Optional[float] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("scheduler",)
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    scheduler: str
    def __init__(self, scheduler: _Optional[str] = ...) -> None: ...

class ConfirmRequest(_message.Message):
    __slots__ = ("scheduler", "quotas_version")
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_VERSION_FIELD_NUMBER: _ClassVar[int]
    scheduler: str
    quotas_version: int
    def __init__(self, scheduler: _Optional[str] = ..., quotas_version: _Optional[int] = ...) -> None: ...

class ConfirmReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ControlSnapshot(_message.Message):
    __slots__ = ("version", "gates", "quotas", "functions", "quotas_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    GATES_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    gates: _containers.RepeatedCompositeFieldContainer[Gate]
    quotas: _containers.RepeatedCompositeFieldContainer[Quota]
    functions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Function]
    quotas_version: int
    def __init__(self, version: _Optional[int] = ..., gates: _Optional[_Iterable[_Union[Gate, _Mapping]]] = ..., quotas: _Optional[_Iterable[_Union[Quota, _Mapping]]] = ..., functions: _Optional[_Iterable[_Union[_common_pb2.Function, _Mapping]]] = ..., quotas_version: _Optional[int] = ...) -> None: ...

class Try(_message.Message):
    __slots__ = ("at", "outcome", "reason")
    AT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    at: float
    outcome: str
    reason: str
    def __init__(self, at: _Optional[float] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("schedule", "replace", "why")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    replace: bool
    why: str
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ..., replace: _Optional[bool] = ..., why: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("name", "what", "who", "why")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    name: str
    what: str
    who: str
    why: str
    def __init__(self, name: _Optional[str] = ..., what: _Optional[str] = ..., who: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

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
