from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Kind(_message.Message):
    __slots__ = ("number", "function", "priority", "collection", "tenant")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    number: int
    function: str
    priority: int
    collection: str
    tenant: str
    def __init__(self, number: _Optional[int] = ..., function: _Optional[str] = ..., priority: _Optional[int] = ..., collection: _Optional[str] = ..., tenant: _Optional[str] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Extra(_message.Message):
    __slots__ = ("index", "key", "headers", "crashes", "expires_at", "alone", "progress", "again", "units")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    CRASHES_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    index: int
    key: str
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    crashes: int
    expires_at: float
    alone: bool
    progress: str
    again: bool
    units: _containers.RepeatedCompositeFieldContainer[Units]
    def __init__(self, index: _Optional[int] = ..., key: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., crashes: _Optional[int] = ..., expires_at: _Optional[float] = ..., alone: _Optional[bool] = ..., progress: _Optional[str] = ..., again: _Optional[bool] = ..., units: _Optional[_Iterable[_Union[Units, _Mapping]]] = ...) -> None: ...

class Units(_message.Message):
    __slots__ = ("unit", "amount", "downstream")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    DOWNSTREAM_FIELD_NUMBER: _ClassVar[int]
    unit: str
    amount: float
    downstream: str
    def __init__(self, unit: _Optional[str] = ..., amount: _Optional[float] = ..., downstream: _Optional[str] = ...) -> None: ...

class Items(_message.Message):
    __slots__ = ("new_kinds", "kind", "id", "payload", "attempt", "extra", "wants_result", "waited")
    NEW_KINDS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    WANTS_RESULT_FIELD_NUMBER: _ClassVar[int]
    WAITED_FIELD_NUMBER: _ClassVar[int]
    new_kinds: _containers.RepeatedCompositeFieldContainer[Kind]
    kind: _containers.RepeatedScalarFieldContainer[int]
    id: _containers.RepeatedScalarFieldContainer[str]
    payload: _containers.RepeatedScalarFieldContainer[bytes]
    attempt: _containers.RepeatedScalarFieldContainer[int]
    extra: _containers.RepeatedCompositeFieldContainer[Extra]
    wants_result: bool
    waited: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, new_kinds: _Optional[_Iterable[_Union[Kind, _Mapping]]] = ..., kind: _Optional[_Iterable[int]] = ..., id: _Optional[_Iterable[str]] = ..., payload: _Optional[_Iterable[bytes]] = ..., attempt: _Optional[_Iterable[int]] = ..., extra: _Optional[_Iterable[_Union[Extra, _Mapping]]] = ..., wants_result: _Optional[bool] = ..., waited: _Optional[_Iterable[float]] = ...) -> None: ...

class Owned(_message.Message):
    __slots__ = ("source", "partition", "epoch", "part", "positions", "parts", "counts")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    source: str
    partition: str
    epoch: int
    part: str
    positions: _containers.RepeatedScalarFieldContainer[int]
    parts: _containers.RepeatedScalarFieldContainer[str]
    counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, source: _Optional[str] = ..., partition: _Optional[str] = ..., epoch: _Optional[int] = ..., part: _Optional[str] = ..., positions: _Optional[_Iterable[int]] = ..., parts: _Optional[_Iterable[str]] = ..., counts: _Optional[_Iterable[int]] = ...) -> None: ...

class Ended(_message.Message):
    __slots__ = ("ref", "outcome", "reason", "after", "result", "crashed", "progress", "dropped_by", "downstream", "scope", "used", "misfit", "asked")
    REF_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    CRASHED_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_BY_FIELD_NUMBER: _ClassVar[int]
    DOWNSTREAM_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    MISFIT_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    ref: int
    outcome: int
    reason: str
    after: float
    result: bytes
    crashed: bool
    progress: str
    dropped_by: DroppedBy
    downstream: str
    scope: str
    used: _containers.RepeatedCompositeFieldContainer[Units]
    misfit: bool
    asked: bool
    def __init__(self, ref: _Optional[int] = ..., outcome: _Optional[int] = ..., reason: _Optional[str] = ..., after: _Optional[float] = ..., result: _Optional[bytes] = ..., crashed: _Optional[bool] = ..., progress: _Optional[str] = ..., dropped_by: _Optional[_Union[DroppedBy, _Mapping]] = ..., downstream: _Optional[str] = ..., scope: _Optional[str] = ..., used: _Optional[_Iterable[_Union[Units, _Mapping]]] = ..., misfit: _Optional[bool] = ..., asked: _Optional[bool] = ...) -> None: ...

class DroppedBy(_message.Message):
    __slots__ = ("version", "who", "why")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    version: int
    who: str
    why: str
    def __init__(self, version: _Optional[int] = ..., who: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Outcomes(_message.Message):
    __slots__ = ("succeeded", "ended")
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    succeeded: _containers.RepeatedScalarFieldContainer[int]
    ended: _containers.RepeatedCompositeFieldContainer[Ended]
    def __init__(self, succeeded: _Optional[_Iterable[int]] = ..., ended: _Optional[_Iterable[_Union[Ended, _Mapping]]] = ...) -> None: ...

class Function(_message.Message):
    __slots__ = ("name", "version", "priority", "spec")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    priority: int
    spec: bytes
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., priority: _Optional[int] = ..., spec: _Optional[bytes] = ...) -> None: ...
