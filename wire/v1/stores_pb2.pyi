from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class StoreCall(_message.Message):
    __slots__ = ("store", "method", "arguments")
    STORE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    store: str
    method: str
    arguments: bytes
    def __init__(self, store: _Optional[str] = ..., method: _Optional[str] = ..., arguments: _Optional[bytes] = ...) -> None: ...

class StoreResult(_message.Message):
    __slots__ = ("value", "error", "message")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    value: bytes
    error: str
    message: str
    def __init__(self, value: _Optional[bytes] = ..., error: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
