"""The engines that a log may have besides the embedded one: what a configuration's `engine` may say."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from pydantic import ValidationError

from ...sdk.clock import SYSTEM_CLOCK, Clock
from ...sdk.model.errors import ConfigError
from .log import Log

#: The engine that needs no server: a file of the node.
EMBEDDED = "sqlite"
#: The others, and where each is; the name is also that of the extra that brings its client library.
ENGINES = {
    "kafka": "tailrace.stores.log.kafka:ENGINE",
    "redis": "tailrace.stores.log.redis:ENGINE",
}


class OpenLog(Log, Protocol):
    """A log that is reached through a connection of its own."""

    async def open(self) -> None:
        """Looks at the server. Raises ConfigError for one that cannot be trusted with a log; one that cannot be reached
        now is tried again at each use."""

    async def close(self) -> None:
        """Closes what it has open. Harmless when closed."""


@dataclass(frozen=True, slots=True)
class LogEngine:
    """`options` is a pydantic model of the keys beside `engine`; `build` makes a log of them."""

    name: str
    options: type[Any]
    build: Callable[[Any, Clock], OpenLog]


def engine_of(name: str) -> LogEngine:
    """The engine of a name. Raises ConfigError for an unknown one and for one whose extra is not installed."""
    if name not in ENGINES:
        known = [EMBEDDED, *ENGINES]
        near = difflib.get_close_matches(name, known, 1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise ConfigError(f'unknown engine "{name}": expected one of {", ".join(known)}{hint}')
    module, _, attribute = ENGINES[name].partition(":")
    try:
        engine: LogEngine = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f'engine "{name}" needs the Python package "{error.name}", which is not installed: '
            f"pip install 'tailrace[{name}]'"
        ) from error
    return engine


def mistakes_in(choice: Mapping[str, Any]) -> list[str]:
    """What is wrong with an engine's name and its options; values are not repeated, they may be secrets."""
    name = choice.get("engine")
    if not isinstance(name, str):
        return [f"expected an engine, such as {{engine: {EMBEDDED}}}"]
    if name == EMBEDDED:
        return [f'the engine "{EMBEDDED}" has no option {key!r}' for key in choice if key != "engine"]
    try:
        engine = engine_of(name)
        engine.options.model_validate(_options(choice))
    except ConfigError as error:
        return [str(error)]
    except ValidationError as error:
        return [_told(each, engine) for each in error.errors(include_input=False, include_url=False)]
    return []


def _told(each: Any, engine: LogEngine) -> str:
    key = ".".join(map(str, each["loc"]))
    if each["type"] == "extra_forbidden":
        return (
            f'the engine "{engine.name}" has no option {key!r}: it has {", ".join(sorted(engine.options.model_fields))}'
        )
    return f"{key}: {each['msg'].removeprefix('Value error, ')}" if key else each["msg"].removeprefix("Value error, ")


def chosen_log(choice: Mapping[str, Any], clock: Clock = SYSTEM_CLOCK) -> OpenLog | None:
    """The log of a choice that has no mistakes; None: the embedded one."""
    if choice["engine"] == EMBEDDED:
        return None
    engine = engine_of(choice["engine"])
    return engine.build(engine.options.model_validate(_options(choice)), clock)


def _options(choice: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in choice.items() if key != "engine"}
