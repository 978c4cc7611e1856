from tailrace.wire.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RecordRequest(_message.Message):
    __slots__ = ("salt",)
    SALT_FIELD_NUMBER: _ClassVar[int]
    salt: str
    def __init__(self, salt: _Optional[str] = ...) -> None: ...

class RecordReply(_message.Message):
    __slots__ = ("lines",)
    LINES_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, lines: _Optional[_Iterable[bytes]] = ...) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("function", "payload", "priority", "collection", "tenant", "id", "headers", "attempt")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    function: str
    payload: bytes
    priority: int
    collection: str
    tenant: str
    id: str
    headers: _containers.RepeatedCompositeFieldContainer[_common_pb2.Header]
    attempt: int
    def __init__(self, function: _Optional[str] = ..., payload: _Optional[bytes] = ..., priority: _Optional[int] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., id: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[_common_pb2.Header, _Mapping]]] = ..., attempt: _Optional[int] = ...) -> None: ...

class ExecuteReply(_message.Message):
    __slots__ = ("outcome", "result", "reason", "after")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    outcome: int
    result: bytes
    reason: str
    after: float
    def __init__(self, outcome: _Optional[int] = ..., result: _Optional[bytes] = ..., reason: _Optional[str] = ..., after: _Optional[float] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("seq", "ack")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    seq: int
    ack: int
    def __init__(self, seq: _Optional[int] = ..., ack: _Optional[int] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("session", "name", "resume", "functions", "pools", "through_outages", "carried", "labels", "unable", "versions", "anew")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class UnableEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class VersionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    THROUGH_OUTAGES_FIELD_NUMBER: _ClassVar[int]
    CARRIED_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    UNABLE_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    ANEW_FIELD_NUMBER: _ClassVar[int]
    session: str
    name: str
    resume: bool
    functions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Function]
    pools: _containers.RepeatedCompositeFieldContainer[Pool]
    through_outages: bool
    carried: _containers.RepeatedCompositeFieldContainer[Carried]
    labels: _containers.ScalarMap[str, str]
    unable: _containers.ScalarMap[str, str]
    versions: _containers.ScalarMap[str, str]
    anew: str
    def __init__(self, session: _Optional[str] = ..., name: _Optional[str] = ..., resume: _Optional[bool] = ..., functions: _Optional[_Iterable[_Union[_common_pb2.Function, _Mapping]]] = ..., pools: _Optional[_Iterable[_Union[Pool, _Mapping]]] = ..., through_outages: _Optional[bool] = ..., carried: _Optional[_Iterable[_Union[Carried, _Mapping]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., unable: _Optional[_Mapping[str, str]] = ..., versions: _Optional[_Mapping[str, str]] = ..., anew: _Optional[str] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("scheduler", "resumed", "heartbeat", "reads_parts", "remembers", "session", "leases")
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    READS_PARTS_FIELD_NUMBER: _ClassVar[int]
    REMEMBERS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    scheduler: str
    resumed: bool
    heartbeat: float
    reads_parts: bool
    remembers: bool
    session: str
    leases: _containers.RepeatedCompositeFieldContainer[LeaseSize]
    def __init__(self, scheduler: _Optional[str] = ..., resumed: _Optional[bool] = ..., heartbeat: _Optional[float] = ..., reads_parts: _Optional[bool] = ..., remembers: _Optional[bool] = ..., session: _Optional[str] = ..., leases: _Optional[_Iterable[_Union[LeaseSize, _Mapping]]] = ...) -> None: ...

class LeaseSize(_message.Message):
    __slots__ = ("name", "size")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    name: str
    size: float
    def __init__(self, name: _Optional[str] = ..., size: _Optional[float] = ...) -> None: ...

class LeaseRequest(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class TailerFrame(_message.Message):
    __slots__ = ("link", "hello", "pushes", "grant", "cancel", "draining", "listed", "adopt", "store")
    LINK_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    PUSHES_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    LISTED_FIELD_NUMBER: _ClassVar[int]
    ADOPT_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    link: Link
    hello: Hello
    pushes: _containers.RepeatedCompositeFieldContainer[Push]
    grant: LeaseGrant
    cancel: _containers.RepeatedScalarFieldContainer[int]
    draining: bool
    listed: _containers.RepeatedCompositeFieldContainer[Listed]
    adopt: _containers.RepeatedCompositeFieldContainer[Adopt]
    store: str
    def __init__(self, link: _Optional[_Union[Link, _Mapping]] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., pushes: _Optional[_Iterable[_Union[Push, _Mapping]]] = ..., grant: _Optional[_Union[LeaseGrant, _Mapping]] = ..., cancel: _Optional[_Iterable[int]] = ..., draining: _Optional[bool] = ..., listed: _Optional[_Iterable[_Union[Listed, _Mapping]]] = ..., adopt: _Optional[_Iterable[_Union[Adopt, _Mapping]]] = ..., store: _Optional[str] = ...) -> None: ...

class Listed(_message.Message):
    __slots__ = ("source", "partition", "epoch", "version")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    source: str
    partition: str
    epoch: int
    version: int
    def __init__(self, source: _Optional[str] = ..., partition: _Optional[str] = ..., epoch: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class Adopt(_message.Message):
    __slots__ = ("source", "partition", "epoch", "version")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    source: str
    partition: str
    epoch: int
    version: int
    def __init__(self, source: _Optional[str] = ..., partition: _Optional[str] = ..., epoch: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class Push(_message.Message):
    __slots__ = ("flight", "fence", "lease_request", "lease", "items", "owned")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    LEASE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    OWNED_FIELD_NUMBER: _ClassVar[int]
    flight: int
    fence: int
    lease_request: int
    lease: float
    items: _common_pb2.Items
    owned: _common_pb2.Owned
    def __init__(self, flight: _Optional[int] = ..., fence: _Optional[int] = ..., lease_request: _Optional[int] = ..., lease: _Optional[float] = ..., items: _Optional[_Union[_common_pb2.Items, _Mapping]] = ..., owned: _Optional[_Union[_common_pb2.Owned, _Mapping]] = ...) -> None: ...

class LeaseGrant(_message.Message):
    __slots__ = ("request", "lease", "flights")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    FLIGHTS_FIELD_NUMBER: _ClassVar[int]
    request: int
    lease: float
    flights: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, request: _Optional[int] = ..., lease: _Optional[float] = ..., flights: _Optional[_Iterable[int]] = ...) -> None: ...

class TailerReply(_message.Message):
    __slots__ = ("link", "welcome", "credit", "outcomes", "lease_request", "adoptions", "barred", "height")
    LINK_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    LEASE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    ADOPTIONS_FIELD_NUMBER: _ClassVar[int]
    BARRED_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    link: Link
    welcome: Welcome
    credit: Credit
    outcomes: _common_pb2.Outcomes
    lease_request: LeaseRequest
    adoptions: _containers.RepeatedCompositeFieldContainer[Adoption]
    barred: _containers.RepeatedCompositeFieldContainer[Barred]
    height: StoreHeight
    def __init__(self, link: _Optional[_Union[Link, _Mapping]] = ..., welcome: _Optional[_Union[Welcome, _Mapping]] = ..., credit: _Optional[_Union[Credit, _Mapping]] = ..., outcomes: _Optional[_Union[_common_pb2.Outcomes, _Mapping]] = ..., lease_request: _Optional[_Union[LeaseRequest, _Mapping]] = ..., adoptions: _Optional[_Iterable[_Union[Adoption, _Mapping]]] = ..., barred: _Optional[_Iterable[_Union[Barred, _Mapping]]] = ..., height: _Optional[_Union[StoreHeight, _Mapping]] = ...) -> None: ...

class StoreHeight(_message.Message):
    __slots__ = ("store", "highest")
    STORE_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_FIELD_NUMBER: _ClassVar[int]
    store: str
    highest: int
    def __init__(self, store: _Optional[str] = ..., highest: _Optional[int] = ...) -> None: ...

class Adoption(_message.Message):
    __slots__ = ("source", "partition", "version", "confirmed", "reason", "lease", "flights")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    FLIGHTS_FIELD_NUMBER: _ClassVar[int]
    source: str
    partition: str
    version: int
    confirmed: bool
    reason: str
    lease: float
    flights: _containers.RepeatedCompositeFieldContainer[AdoptedFlight]
    def __init__(self, source: _Optional[str] = ..., partition: _Optional[str] = ..., version: _Optional[int] = ..., confirmed: _Optional[bool] = ..., reason: _Optional[str] = ..., lease: _Optional[float] = ..., flights: _Optional[_Iterable[_Union[AdoptedFlight, _Mapping]]] = ...) -> None: ...

class AdoptedFlight(_message.Message):
    __slots__ = ("flight", "fence", "part", "index", "positions")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    flight: int
    fence: int
    part: str
    index: _containers.RepeatedScalarFieldContainer[int]
    positions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, flight: _Optional[int] = ..., fence: _Optional[int] = ..., part: _Optional[str] = ..., index: _Optional[_Iterable[int]] = ..., positions: _Optional[_Iterable[int]] = ...) -> None: ...

class AdoptRequest(_message.Message):
    __slots__ = ("scheduler", "row")
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    scheduler: str
    row: Adopt
    def __init__(self, scheduler: _Optional[str] = ..., row: _Optional[_Union[Adopt, _Mapping]] = ...) -> None: ...

class Barred(_message.Message):
    __slots__ = ("source", "partition", "version")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    source: str
    partition: str
    version: int
    def __init__(self, source: _Optional[str] = ..., partition: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("cells", "closed", "closed_changed", "functions", "total")
    CELLS_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_CHANGED_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    cells: _containers.RepeatedCompositeFieldContainer[Cell]
    closed: _containers.RepeatedCompositeFieldContainer[ClosedCell]
    closed_changed: bool
    functions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Function]
    total: int
    def __init__(self, cells: _Optional[_Iterable[_Union[Cell, _Mapping]]] = ..., closed: _Optional[_Iterable[_Union[ClosedCell, _Mapping]]] = ..., closed_changed: _Optional[bool] = ..., functions: _Optional[_Iterable[_Union[_common_pb2.Function, _Mapping]]] = ..., total: _Optional[int] = ...) -> None: ...

class Cell(_message.Message):
    __slots__ = ("function", "priority", "limit")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    function: str
    priority: int
    limit: int
    def __init__(self, function: _Optional[str] = ..., priority: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class ClosedCell(_message.Message):
    __slots__ = ("function", "collection", "tenant", "reason", "drop", "probes", "since", "priority", "exact", "all_collections", "all_tenants")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    ALL_COLLECTIONS_FIELD_NUMBER: _ClassVar[int]
    ALL_TENANTS_FIELD_NUMBER: _ClassVar[int]
    function: str
    collection: str
    tenant: str
    reason: str
    drop: bool
    probes: int
    since: float
    priority: int
    exact: bool
    all_collections: bool
    all_tenants: bool
    def __init__(self, function: _Optional[str] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., reason: _Optional[str] = ..., drop: _Optional[bool] = ..., probes: _Optional[int] = ..., since: _Optional[float] = ..., priority: _Optional[int] = ..., exact: _Optional[bool] = ..., all_collections: _Optional[bool] = ..., all_tenants: _Optional[bool] = ...) -> None: ...

class WorkerFrame(_message.Message):
    __slots__ = ("link", "hello", "outcomes", "lease_request", "pools", "draining", "progress", "waits", "goes_on", "carried", "carried_changed")
    LINK_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    LEASE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    GOES_ON_FIELD_NUMBER: _ClassVar[int]
    CARRIED_FIELD_NUMBER: _ClassVar[int]
    CARRIED_CHANGED_FIELD_NUMBER: _ClassVar[int]
    link: Link
    hello: Hello
    outcomes: _common_pb2.Outcomes
    lease_request: LeaseRequest
    pools: _containers.RepeatedCompositeFieldContainer[Pool]
    draining: bool
    progress: _containers.RepeatedCompositeFieldContainer[Progress]
    waits: _containers.RepeatedScalarFieldContainer[int]
    goes_on: _containers.RepeatedScalarFieldContainer[int]
    carried: _containers.RepeatedCompositeFieldContainer[Carried]
    carried_changed: bool
    def __init__(self, link: _Optional[_Union[Link, _Mapping]] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., outcomes: _Optional[_Union[_common_pb2.Outcomes, _Mapping]] = ..., lease_request: _Optional[_Union[LeaseRequest, _Mapping]] = ..., pools: _Optional[_Iterable[_Union[Pool, _Mapping]]] = ..., draining: _Optional[bool] = ..., progress: _Optional[_Iterable[_Union[Progress, _Mapping]]] = ..., waits: _Optional[_Iterable[int]] = ..., goes_on: _Optional[_Iterable[int]] = ..., carried: _Optional[_Iterable[_Union[Carried, _Mapping]]] = ..., carried_changed: _Optional[bool] = ...) -> None: ...

class Carried(_message.Message):
    __slots__ = ("function", "priority", "collection", "tenant", "count")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    function: str
    priority: int
    collection: str
    tenant: str
    count: int
    def __init__(self, function: _Optional[str] = ..., priority: _Optional[int] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class Pool(_message.Message):
    __slots__ = ("name", "functions", "slots", "limit", "alone", "failure", "health")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    functions: _containers.RepeatedScalarFieldContainer[str]
    slots: int
    limit: int
    alone: bool
    failure: str
    health: str
    def __init__(self, name: _Optional[str] = ..., functions: _Optional[_Iterable[str]] = ..., slots: _Optional[int] = ..., limit: _Optional[int] = ..., alone: _Optional[bool] = ..., failure: _Optional[str] = ..., health: _Optional[str] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("ref", "note")
    REF_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ref: int
    note: str
    def __init__(self, ref: _Optional[int] = ..., note: _Optional[str] = ...) -> None: ...

class WorkerReply(_message.Message):
    __slots__ = ("link", "welcome", "assigns", "grants", "cancel")
    LINK_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    ASSIGNS_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    link: Link
    welcome: Welcome
    assigns: _containers.RepeatedCompositeFieldContainer[Assign]
    grants: LeaseGrants
    cancel: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, link: _Optional[_Union[Link, _Mapping]] = ..., welcome: _Optional[_Union[Welcome, _Mapping]] = ..., assigns: _Optional[_Iterable[_Union[Assign, _Mapping]]] = ..., grants: _Optional[_Union[LeaseGrants, _Mapping]] = ..., cancel: _Optional[_Iterable[int]] = ...) -> None: ...

class Assign(_message.Message):
    __slots__ = ("flight", "group", "lease_request", "lease", "pool", "fence", "items")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    LEASE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    flight: int
    group: int
    lease_request: int
    lease: float
    pool: str
    fence: _containers.RepeatedScalarFieldContainer[int]
    items: _common_pb2.Items
    def __init__(self, flight: _Optional[int] = ..., group: _Optional[int] = ..., lease_request: _Optional[int] = ..., lease: _Optional[float] = ..., pool: _Optional[str] = ..., fence: _Optional[_Iterable[int]] = ..., items: _Optional[_Union[_common_pb2.Items, _Mapping]] = ...) -> None: ...

class LeaseGrants(_message.Message):
    __slots__ = ("request", "groups", "revoked")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    request: int
    groups: _containers.RepeatedCompositeFieldContainer[GroupLease]
    revoked: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, request: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[GroupLease, _Mapping]]] = ..., revoked: _Optional[_Iterable[int]] = ...) -> None: ...

class GroupLease(_message.Message):
    __slots__ = ("group", "lease")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    group: int
    lease: float
    def __init__(self, group: _Optional[int] = ..., lease: _Optional[float] = ...) -> None: ...

class InspectRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class InspectReply(_message.Message):
    __slots__ = ("scheduler", "lanes", "workers", "tailers", "outcomes", "reasons", "ready", "clogged", "downstreams", "retries", "unknown_downstreams", "running", "units")
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    TAILERS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    CLOGGED_FIELD_NUMBER: _ClassVar[int]
    DOWNSTREAMS_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_DOWNSTREAMS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    scheduler: str
    lanes: _containers.RepeatedCompositeFieldContainer[Lane]
    workers: _containers.RepeatedCompositeFieldContainer[WorkerState]
    tailers: _containers.RepeatedCompositeFieldContainer[TailerState]
    outcomes: _containers.RepeatedCompositeFieldContainer[OutcomeCount]
    reasons: _containers.RepeatedCompositeFieldContainer[ReasonCount]
    ready: bool
    clogged: _containers.RepeatedCompositeFieldContainer[Clogged]
    downstreams: _containers.RepeatedCompositeFieldContainer[DownstreamState]
    retries: _containers.RepeatedCompositeFieldContainer[RetryState]
    unknown_downstreams: _containers.RepeatedCompositeFieldContainer[ReasonCount]
    running: _containers.RepeatedCompositeFieldContainer[Running]
    units: _containers.RepeatedCompositeFieldContainer[UnitState]
    def __init__(self, scheduler: _Optional[str] = ..., lanes: _Optional[_Iterable[_Union[Lane, _Mapping]]] = ..., workers: _Optional[_Iterable[_Union[WorkerState, _Mapping]]] = ..., tailers: _Optional[_Iterable[_Union[TailerState, _Mapping]]] = ..., outcomes: _Optional[_Iterable[_Union[OutcomeCount, _Mapping]]] = ..., reasons: _Optional[_Iterable[_Union[ReasonCount, _Mapping]]] = ..., ready: _Optional[bool] = ..., clogged: _Optional[_Iterable[_Union[Clogged, _Mapping]]] = ..., downstreams: _Optional[_Iterable[_Union[DownstreamState, _Mapping]]] = ..., retries: _Optional[_Iterable[_Union[RetryState, _Mapping]]] = ..., unknown_downstreams: _Optional[_Iterable[_Union[ReasonCount, _Mapping]]] = ..., running: _Optional[_Iterable[_Union[Running, _Mapping]]] = ..., units: _Optional[_Iterable[_Union[UnitState, _Mapping]]] = ...) -> None: ...

class Running(_message.Message):
    __slots__ = ("function", "priority", "collection", "tenant", "items")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    function: str
    priority: int
    collection: str
    tenant: str
    items: int
    def __init__(self, function: _Optional[str] = ..., priority: _Optional[int] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., items: _Optional[int] = ...) -> None: ...

class UnitState(_message.Message):
    __slots__ = ("function", "collection", "tenant", "downstream", "unit", "left", "burst", "rate", "waiting")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    DOWNSTREAM_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    function: str
    collection: str
    tenant: str
    downstream: str
    unit: str
    left: float
    burst: float
    rate: float
    waiting: int
    def __init__(self, function: _Optional[str] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., downstream: _Optional[str] = ..., unit: _Optional[str] = ..., left: _Optional[float] = ..., burst: _Optional[float] = ..., rate: _Optional[float] = ..., waiting: _Optional[int] = ...) -> None: ...

class DownstreamState(_message.Message):
    __slots__ = ("downstream", "tenant", "state", "rate", "running", "throttled", "shrank", "shrank_at", "probe_at", "reason")
    DOWNSTREAM_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_FIELD_NUMBER: _ClassVar[int]
    SHRANK_FIELD_NUMBER: _ClassVar[int]
    SHRANK_AT_FIELD_NUMBER: _ClassVar[int]
    PROBE_AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    downstream: str
    tenant: str
    state: str
    rate: float
    running: int
    throttled: int
    shrank: int
    shrank_at: float
    probe_at: float
    reason: str
    def __init__(self, downstream: _Optional[str] = ..., tenant: _Optional[str] = ..., state: _Optional[str] = ..., rate: _Optional[float] = ..., running: _Optional[int] = ..., throttled: _Optional[int] = ..., shrank: _Optional[int] = ..., shrank_at: _Optional[float] = ..., probe_at: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class RetryState(_message.Message):
    __slots__ = ("function", "rate", "waiting")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    function: str
    rate: float
    waiting: int
    def __init__(self, function: _Optional[str] = ..., rate: _Optional[float] = ..., waiting: _Optional[int] = ...) -> None: ...

class Lane(_message.Message):
    __slots__ = ("function", "priority", "waiting", "running", "reason")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    function: str
    priority: int
    waiting: int
    running: int
    reason: str
    def __init__(self, function: _Optional[str] = ..., priority: _Optional[int] = ..., waiting: _Optional[int] = ..., running: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Clogged(_message.Message):
    __slots__ = ("function", "state", "reason", "since", "asking")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    ASKING_FIELD_NUMBER: _ClassVar[int]
    function: str
    state: str
    reason: str
    since: float
    asking: int
    def __init__(self, function: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., since: _Optional[float] = ..., asking: _Optional[int] = ...) -> None: ...

class WorkerState(_message.Message):
    __slots__ = ("name", "session", "pools", "assigned", "draining", "connected", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    session: str
    pools: _containers.RepeatedCompositeFieldContainer[Pool]
    assigned: int
    draining: bool
    connected: bool
    labels: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., session: _Optional[str] = ..., pools: _Optional[_Iterable[_Union[Pool, _Mapping]]] = ..., assigned: _Optional[int] = ..., draining: _Optional[bool] = ..., connected: _Optional[bool] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class TailerState(_message.Message):
    __slots__ = ("name", "session", "in_flight", "connected")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    name: str
    session: str
    in_flight: int
    connected: bool
    def __init__(self, name: _Optional[str] = ..., session: _Optional[str] = ..., in_flight: _Optional[int] = ..., connected: _Optional[bool] = ...) -> None: ...

class OutcomeCount(_message.Message):
    __slots__ = ("outcome", "count")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    outcome: int
    count: int
    def __init__(self, outcome: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class ReasonCount(_message.Message):
    __slots__ = ("reason", "count")
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    reason: str
    count: int
    def __init__(self, reason: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("id", "function", "priority", "collection", "tenant", "source")
    ID_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    function: str
    priority: int
    collection: str
    tenant: str
    source: str
    def __init__(self, id: _Optional[str] = ..., function: _Optional[str] = ..., priority: _Optional[int] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class Hold(_message.Message):
    __slots__ = ("reason", "detail", "ends_at")
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    reason: str
    detail: str
    ends_at: float
    def __init__(self, reason: _Optional[str] = ..., detail: _Optional[str] = ..., ends_at: _Optional[float] = ...) -> None: ...

class ExplainReply(_message.Message):
    __slots__ = ("known", "state", "reason", "detail", "worker", "ahead", "heard_at", "holds", "waiting", "running")
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    HEARD_AT_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    known: bool
    state: str
    reason: str
    detail: str
    worker: str
    ahead: int
    heard_at: float
    holds: _containers.RepeatedCompositeFieldContainer[Hold]
    waiting: int
    running: int
    def __init__(self, known: _Optional[bool] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ..., worker: _Optional[str] = ..., ahead: _Optional[int] = ..., heard_at: _Optional[float] = ..., holds: _Optional[_Iterable[_Union[Hold, _Mapping]]] = ..., waiting: _Optional[int] = ..., running: _Optional[int] = ...) -> None: ...
