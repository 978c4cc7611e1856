"""Engines of stores, as `{engine: …}` in a configuration names them: a name, and the engine's own options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from ..model.did_you_mean import meant
from ..model.errors import ConfigError

S = TypeVar("S")

#: The engine that needs no server: a file of the node.
EMBEDDED = "sqlite"


@dataclass(frozen=True)
class StoreEngine(Generic[S]):
    """An engine of one kind of store. `options` is a pydantic model of the keys beside `engine`; `build` makes a store
    of these options and of further arguments, which the kind defines."""

    name: str
    options: type[Any]
    build: Callable[..., S]


class Engines(Generic[S]):
    """The engines of one kind of store besides the embedded one, each with the place of its code (module:attribute).
    Its name is also the name of the pip extra that brings its client library."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def named(self, name: str) -> StoreEngine[S]:
        """The engine of this name. Raises ConfigError for an unknown name and for an engine whose extra is not
        installed."""
        if name not in self._places:
            raise ConfigError(f'unknown engine "{name}": {meant(name, [EMBEDDED, *self._places])}')
        module, _, attribute = self._places[name].partition(":")
        try:
            engine: StoreEngine[S] = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f'engine "{name}" needs the Python package "{error.name}", which is not installed: '
                f"pip install 'tailrace[{name}]'"
            ) from error
        return engine

    def mistakes_in(self, choice: Mapping[str, Any]) -> list[str]:
        """Mistakes in the name of an engine and in its options, as messages; empty: none. Values are not repeated,
        since they may be secrets."""
        name = choice.get("engine")
        if not isinstance(name, str):
            return [f"expected an engine, such as {{engine: {EMBEDDED}}}"]
        if name == EMBEDDED:
            return [f'the engine "{EMBEDDED}" has no option {key!r}' for key in choice if key != "engine"]
        try:
            engine = self.named(name)
            engine.options.model_validate(_options(choice))
        except ConfigError as error:
            return [str(error)]
        except ValidationError as error:
            return [_message(each, engine) for each in error.errors(include_input=False, include_url=False)]
        return []

    def chosen(self, choice: Mapping[str, Any], *given: Any, **named: Any) -> S | None:
        """The store of a choice that has no mistakes; None: the embedded one."""
        if choice["engine"] == EMBEDDED:
            return None
        return self.named(choice["engine"]).build(self.options_of(choice), *given, **named)

    def options_of(self, choice: Mapping[str, Any]) -> Any:
        """The options in a choice without mistakes, of another engine than the embedded one, as its model."""
        return self.named(choice["engine"]).options.model_validate(_options(choice))


def _message(each: Any, engine: StoreEngine[Any]) -> str:
    key = ".".join(map(str, each["loc"]))
    if each["type"] == "extra_forbidden":
        names = sorted(field.alias or name for name, field in engine.options.model_fields.items())
        return f'the engine "{engine.name}" has no option {key!r}: it has {", ".join(names)}'
    return f"{key}: {each['msg'].removeprefix('Value error, ')}" if key else each["msg"].removeprefix("Value error, ")


def _options(choice: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in choice.items() if key != "engine"}
