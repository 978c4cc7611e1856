"""One submission: a function, its arguments, and when and under which conditions it is to run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from ..foundation.tracing import headers_of_a_call
from ..model.errors import InvalidPayload, InvalidRequest
from ..model.name import NAME_LENGTH
from ..model.priority import Priority
from ..model.reference import BY_REFERENCE, REFERENCE, Reference
from ..model.status import CREATED_BY
from ..model.units import seconds
from ..model.workload import Headers
from .payload import Arguments, RawArguments, encode_arguments

if TYPE_CHECKING:
    from .function import Function

W = TypeVar("W", bound=Callable[..., Any])

#: The largest payload that any gateway takes (bytes); most take less (`max_payload`).
LARGEST_PAYLOAD = 4 << 20
#: Longest URL in `on_done` (characters).
LONGEST_URL = 2000


class Call:
    """A submission, checked and encoded when it is made.

    function       a declared function, or the name of one (then the worker checks the arguments)
    args, kwargs   its arguments; positional ones only with a declared function
    delay          seconds or "5m" from now; at: a datetime (naive: local time) or wall clock seconds instead
    priority       interactive | user_visible | eventual | reporting; default: the function's own
    collection     a label that limits and gates can name; default: the function's own
    tenant         the customer or account it is for: a label that limits, fair shares and gates can name, and by which
                   the workload and its dead letter are found
    key            ordering key: at most one workload of a key runs at a time, in order
    dedupe_key     idempotency key: a submission with a known one stores nothing, and returns the first one's workload
    headers        text pairs that the function finds in its Context
    expires_after  seconds or "1h" from when it is due; then it is not started any more
    on_done        a function or an https URL that is told when it is over, however it ended, at least once (a function
                   gets the event as its argument); not on a queue in Redis
    created_by     who submits it, for `status`; a header of its own (`created-by`). Of a caller with a certificate or a
                   token the gateway notes that one's name instead
    arguments      the function's arguments by name, for names that are also options above. If a declared function has
                   a parameter named like an option, that option can only be given beside `arguments` (perhaps empty),
                   so that it is clear which of the two is meant

    The only argument of a function that takes `bytes` may be a `Reference` to an object that is too large to travel.
    The function then reads the object with `ctx.open()`.

    Raises InvalidPayload naming the argument that does not fit, InvalidRequest naming the option that does not.
    """

    __slots__ = (
        "at",
        "collection",
        "dedupe_key",
        "delay",
        "expires_after",
        "function",
        "headers",
        "key",
        "on_done",
        "payload",
        "priority",
        "tenant",
    )

    def __init__(
        self,
        function: Function[..., Any] | str,
        /,
        *args: Any,
        delay: float | str | None = None,
        at: datetime | float | None = None,
        priority: str | int | Priority | None = None,
        collection: str | None = None,
        tenant: str = "",
        key: str = "",
        dedupe_key: str = "",
        headers: Mapping[str, str] | None = None,
        expires_after: float | str | None = None,
        on_done: Function[..., Any] | str = "",
        created_by: str = "",
        arguments: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        given = merged(arguments, kwargs) if arguments else kwargs
        options = {
            "delay": delay,
            "at": at,
            "priority": priority,
            "collection": collection,
            "tenant": tenant or None,
            "key": key or None,
            "dedupe_key": dedupe_key or None,
            "headers": headers,
            "expires_after": expires_after,
            "on_done": on_done or None,
            "created_by": created_by or None,
        }
        if isinstance(function, str):
            if args:
                raise InvalidRequest(
                    f"{function!r} is submitted by its name, so its arguments need theirs too: name each argument, "
                    "or submit the declared function"
                )
            self.function = _text("function", function)
            self.collection = _text("collection", collection or "")
            reference = _reference(function, None, given)
            self.payload = encode_arguments(None, given) if reference is None else reference.encode()
        elif getattr(function, "spec", None) is not None:
            self.function = function.spec.name
            self.collection = function.collection if collection is None else _text("collection", collection)
            if arguments is None and any(value is not None for value in options.values()):
                check_clash(function, options)
            given = _by_name(function, args, given) if args else given
            reference = _reference(self.function, function.arguments, given)
            self.payload = encode_arguments(function, given) if reference is None else reference.encode()
        else:
            raise InvalidRequest(
                f"cannot submit {function!r:.200}: expected a function declared with @tailrace.function, or its name"
            )
        if len(self.payload) > LARGEST_PAYLOAD:
            raise InvalidPayload(
                f"{self.function}: the payload has {len(self.payload)} bytes, at most {LARGEST_PAYLOAD} can be taken: "
                f"{BY_REFERENCE}"
            )
        if delay is not None and at is not None:
            raise InvalidRequest(f"{self.function}: give delay or at, not both")
        self.delay = 0.0 if delay is None else duration("delay", delay)
        self.at = None if at is None else moment("at", at)
        self.priority = None if priority is None else int(Priority.parse(priority))
        self.tenant = _text("tenant", tenant)
        self.key = _text("key", key)
        self.dedupe_key = _text("dedupe_key", dedupe_key)
        self.headers: Headers = () if not headers else _pairs(headers)
        if reference is not None:
            self.headers = (*self.headers, REFERENCE)
        if created_by:
            self.headers = (*self.headers, (CREATED_BY, _text("created_by", created_by)))
        self.headers = headers_of_a_call(self.headers)
        self.on_done = _text("on_done", called_by(on_done, "on_done"), LONGEST_URL)
        self.expires_after = None if expires_after is None else duration("expires_after", expires_after)

    def __repr__(self) -> str:
        return f"<Call {self.function} of {len(self.payload)} bytes>"


def called_by(function: Function[..., Any] | str, what: str) -> str:
    """The name of a declared function; a name stays as it is. Raises InvalidRequest for anything else."""
    found = function if isinstance(function, str) else getattr(getattr(function, "spec", None), "name", None)
    if not isinstance(found, str):
        raise InvalidRequest(
            f"cannot make {what} of {function!r:.200}: expected a function declared with @tailrace.function, or its "
            "name"
        )
    return str.__str__(found)  # the text of a subclass of str, whatever its own methods say


def shown_as_call(method: Callable[..., Any], wrapper: W) -> W:
    """Gives `wrapper` the name and the docstring of `method`, and the signature of a Call."""
    shown: Any = wraps(method)(wrapper)
    shown.__signature__ = inspect.signature(Call.__init__).replace(
        return_annotation=inspect.signature(method).return_annotation
    )
    return shown  # type: ignore[no-any-return]


def merged(arguments: Mapping[str, Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Merges arguments given by `arguments` and by keyword. Raises InvalidPayload for one that is given twice."""
    twice = arguments.keys() & kwargs.keys()
    if twice:
        raise InvalidPayload(f"argument {min(twice)!r} is given twice: by its name and in arguments")
    return {**arguments, **kwargs}


def _reference(name: str, arguments: Arguments | None, given: Mapping[str, Any]) -> Reference | None:
    """The reference that stands for the whole payload; None: the arguments travel themselves."""
    found = next((value for value in given.values() if isinstance(value, Reference)), None)
    if found is not None and (len(given) > 1 or not (arguments is None or isinstance(arguments, RawArguments))):
        raise InvalidPayload(
            f"{name}: a Reference stands for a whole payload: it can only be the one argument of a function that takes "
            "bytes (and reads them with ctx.open())"
        )
    return found


def check_clash(function: Function[..., Any], options: Mapping[str, Any]) -> None:
    """Raises InvalidRequest for an option that was given and is a parameter of the function too."""
    for name in function.parameters:
        if options.get(name) is not None:
            raise InvalidRequest(
                f"{name!r} is both an argument of {function.name} and an option of the submission: give the argument "
                f"in arguments={{{name!r}: …}}, and the option as you did (arguments={{}} if only the option is meant)"
            )


def _by_name(function: Function[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments by name. Raises InvalidPayload for too many positional ones, and for one given twice."""
    names = [
        name
        for name, parameter in function.parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    if len(args) > len(names):
        raise InvalidPayload(
            f"{function.name} takes {len(names)} positional arguments ({', '.join(names) or 'none'}), got {len(args)}"
        )
    for name in names[: len(args)]:
        if name in kwargs:
            raise InvalidPayload(f"{function.name}: argument {name!r} is given twice: by its place and by its name")
    return {**dict(zip(names, args, strict=False)), **kwargs}


def duration(name: str, value: float | str) -> float:
    """The seconds of a duration. Raises InvalidRequest, which begins with the option's name."""
    try:
        return seconds(value)
    except InvalidRequest as error:
        raise InvalidRequest(f"{name}: {error}") from None


def moment(name: str, value: datetime | float) -> float:
    """The wall clock seconds of a moment. Raises InvalidRequest, which begins with the option's name."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    raise InvalidRequest(f"{name}: {value!r} is not a moment: expected a datetime or wall clock seconds since 1970")


def _text(name: str, value: str, most: int = NAME_LENGTH) -> str:
    if not _is_text(value) or len(value) > most:
        raise InvalidRequest(f"{name}: {value!r:.100} is not usable: expected text of at most {most} characters")
    return value


def _pairs(headers: Mapping[str, str]) -> Headers:
    for name, value in headers.items():
        if not _is_text(name) or not _is_text(value):
            raise InvalidRequest(f"headers: {name!r:.100} is {value!r:.100}: expected text for both")
    return tuple(headers.items())


def _is_text(value: object) -> bool:
    """Whether a value is text that can be sent (half a surrogate pair cannot)."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
