from tailrace.wire.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ParkRequest(_message.Message):
    __slots__ = ("tailer", "due", "first_seen", "reason", "throttles", "fence", "partition", "position", "n", "items")
    TAILER_FIELD_NUMBER: _ClassVar[int]
    DUE_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    THROTTLES_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    tailer: str
    due: _containers.RepeatedScalarFieldContainer[float]
    first_seen: _containers.RepeatedScalarFieldContainer[float]
    reason: _containers.RepeatedScalarFieldContainer[str]
    throttles: _containers.RepeatedScalarFieldContainer[int]
    fence: _containers.RepeatedScalarFieldContainer[int]
    partition: _containers.RepeatedScalarFieldContainer[str]
    position: _containers.RepeatedScalarFieldContainer[int]
    n: _containers.RepeatedScalarFieldContainer[int]
    items: _common_pb2.Items
    def __init__(self, tailer: _Optional[str] = ..., due: _Optional[_Iterable[float]] = ..., first_seen: _Optional[_Iterable[float]] = ..., reason: _Optional[_Iterable[str]] = ..., throttles: _Optional[_Iterable[int]] = ..., fence: _Optional[_Iterable[int]] = ..., partition: _Optional[_Iterable[str]] = ..., position: _Optional[_Iterable[int]] = ..., n: _Optional[_Iterable[int]] = ..., items: _Optional[_Union[_common_pb2.Items, _Mapping]] = ...) -> None: ...

class ParkReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DepthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DepthReply(_message.Message):
    __slots__ = ("rungs",)
    RUNGS_FIELD_NUMBER: _ClassVar[int]
    rungs: _containers.RepeatedCompositeFieldContainer[RungDepth]
    def __init__(self, rungs: _Optional[_Iterable[_Union[RungDepth, _Mapping]]] = ...) -> None: ...

class RungDepth(_message.Message):
    __slots__ = ("stream", "wait", "items")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    stream: str
    wait: float
    items: int
    def __init__(self, stream: _Optional[str] = ..., wait: _Optional[float] = ..., items: _Optional[int] = ...) -> None: ...
