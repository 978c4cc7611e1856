"""Configuration from YAML: strict, bounded, and with errors that name the file, the line and the key.

YAML is read as nodes (PyYAML's safe loader, never objects), so that every value keeps its line. `${VAR}` and
`${VAR:-default}` stand for environment variables inside scalars; `$${` is a literal `${`. Unknown keys are answered
with the nearest known one, as Oban does at boot.
"""

from __future__ import annotations

import difflib
import os
import re
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ValidationError

from .model.errors import ConfigError, InvalidRequest
from .model.units import seconds, size

M = TypeVar("M", bound=BaseModel)

#: Largest file, deepest nesting, most values (aliases counted each time they are used).
MAX_BYTES = 1 << 20
MAX_DEPTH = 20
MAX_NODES = 20_000

_VARIABLE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\$\{")
_PLAIN_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map")}
Path_ = tuple[str | int, ...]


def _seconds(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f'{value!r} is not a duration: expected seconds, or text like "30s" or "1h30m"')
    try:
        return seconds(value)
    except InvalidRequest as error:
        raise ValueError(str(error)) from None


def _bytes(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f'{value!r} is not a size: expected bytes, or text like "16MiB"')
    try:
        return size(value)
    except InvalidRequest as error:
        raise ValueError(str(error)) from None


#: A duration in a model: seconds, or text like "30s".
Seconds = Annotated[float, BeforeValidator(_seconds)]
#: A size in a model: bytes, or text like "16MiB".
Bytes = Annotated[int, BeforeValidator(_bytes)]


def load(path: Path, model: type[M], *, environment: Mapping[str, str] = os.environ) -> M:
    """The settings in a file. Raises ConfigError with every mistake found, each with its line."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path}: larger than {MAX_BYTES} bytes; a configuration is never that large")
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; expected a YAML file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    return loads(text, str(path), model, environment=environment)


def loads(text: str, name: str, model: type[M], *, environment: Mapping[str, str] = os.environ) -> M:
    """The settings in a text; `name` stands for the file in messages."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{name}: larger than {MAX_BYTES} bytes; a configuration is never that large")
    document = _Document(name, environment)
    value = document.read(text)
    if value is None:
        value = {}
    if document.errors:
        raise ConfigError("\n".join(document.errors))
    if not isinstance(value, dict):
        raise ConfigError(f"{name}:1: expected keys and values at the top, such as `name: …`")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ConfigError("\n".join(document.explain(error, model))) from None


class _Document:
    """One YAML document as plain values, with the line of each."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self._name = name
        self._environment = environment
        self._lines: dict[Path_, int] = {}
        self._nodes = 0
        self.errors: list[str] = []

    def read(self, text: str) -> Any:
        try:
            node = _compose(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise ConfigError(f"{self._name}:{line}: not valid YAML: {error.problem or error.context}") from None
        except yaml.YAMLError as error:
            raise ConfigError(f"{self._name}: not valid YAML: {_short(error)}") from None
        except RecursionError:
            raise ConfigError(f"{self._name}: nested deeper than {MAX_DEPTH} levels") from None
        return None if node is None else self._value(node, (), 0)

    def _value(self, node: yaml.Node, path: Path_, depth: int) -> Any:
        line = node.start_mark.line + 1
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ConfigError(f"{self._name}:{line}: more than {MAX_NODES} values (aliases count each time)")
        if depth > MAX_DEPTH:
            raise ConfigError(f"{self._name}:{line}: nested deeper than {MAX_DEPTH} levels")
        self._lines.setdefault(path, line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
        return self._scalar(node, line)

    def _mapping(self, node: yaml.MappingNode, path: Path_, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                self.errors.append(f"{self._name}:{line}: expected a plain key, such as `name:`")
                continue
            key = str(key_node.value)
            if key in found:
                self.errors.append(f"{self._name}:{line}: key {key!r} stands twice; keep one of them")
                continue
            self._lines[(*path, key)] = line
            found[key] = self._value(value_node, (*path, key), depth + 1)
        return found

    def _scalar(self, node: yaml.Node, line: int) -> Any:
        text = str(node.value)
        if "${" in text:
            text = self._substitute(text, line)
            if getattr(node, "style", None) is None:  # unquoted: 8786 from a variable is a number again
                tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
                node = yaml.ScalarNode(tag, text, node.start_mark, node.end_mark)
            else:
                return text
        if node.tag not in _PLAIN_TAGS:
            if node.tag == "tag:yaml.org,2002:timestamp":
                return text
            self.errors.append(f"{self._name}:{line}: tag {node.tag!r} is not allowed; write a plain value")
            return None
        try:
            return _construct(node)
        except (ValueError, yaml.YAMLError):
            self.errors.append(f"{self._name}:{line}: {text[:80]!r} cannot be read as a value")
            return None

    def _substitute(self, text: str, line: int) -> str:
        def replace(match: re.Match[str]) -> str:
            if match[0] == "$${":
                return "${"
            name = match["name"]
            if name is None:
                self.errors.append(f"{self._name}:{line}: expected ${{NAME}} or ${{NAME:-default}} in {text[:80]!r}")
                return ""
            value = self._environment.get(name) or match["default"]
            if value is None:
                self.errors.append(
                    f"{self._name}:{line}: environment variable {name} is not set; set it or write ${{{name}:-default}}"
                )
                return ""
            return value

        return _VARIABLE.sub(replace, text)

    def explain(self, error: ValidationError, model: type[BaseModel]) -> list[str]:
        """Each mistake that the model found, in the order of the file."""
        found = []
        for each in error.errors(include_url=False):
            location = tuple(part for part in each["loc"])
            path, line = self._place(location)
            found.append((line, f"{self._name}:{line}: {_sentence(each, path, location, model)}"))
        return list(dict.fromkeys(text for _, text in sorted(found, key=lambda item: item[0])))

    def _place(self, location: Path_) -> tuple[Path_, int]:
        """The longest part of a pydantic location that is in the file (it also names union members), and its line."""
        path: Path_ = ()
        for part in location:
            if (*path, part) in self._lines:
                path = (*path, part)
        return path, self._lines.get(path, 1)


def _compose(text: str) -> yaml.Node | None:
    loader = yaml.SafeLoader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _construct(node: yaml.Node) -> Any:
    constructor = yaml.constructor.SafeConstructor()
    return constructor.construct_object(node)


def _sentence(each: Any, path: Path_, location: Path_, model: type[BaseModel]) -> str:
    name = ".".join(map(str, path)) or "the file"
    if each["type"] == "extra_forbidden":
        key = str(location[-1])
        known = _known_keys(model, location[:-1])
        near = difflib.get_close_matches(key, known, n=1)
        under = ".".join(map(str, location[:-1]))
        where = f" under {under}" if under else ""
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(known))}"
        return f"unknown key {key!r}{where}; {hint}"
    if each["type"] == "missing":
        return f"key {'.'.join(map(str, location))!r} is missing"
    message = str(each["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    if each["type"] in ("model_type", "dict_type", "model_attributes_type"):
        message = "keys and values below it"
    prefix = "" if each["type"] == "value_error" else "expected "
    given = "" if each["type"] == "value_error" else f", got {_short(each['input'])}"
    return f"{name}: {prefix}{message}{given}"


def _known_keys(model: type[BaseModel], path: Path_) -> list[str]:
    """The keys that a model takes at a place."""
    models: list[Any] = [model]
    for part in path:
        models = [found for each in models for found in _models_in(_annotation(each, part))] or models
    return [field.alias or name for each in models for name, field in each.model_fields.items()]


def _annotation(model: Any, key: str | int) -> Any:
    for name, field in getattr(model, "model_fields", {}).items():
        if key in (name, field.alias):
            return field.annotation
    return None


def _models_in(annotation: Any) -> list[Any]:
    """The models that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in typing.get_args(annotation) for found in _models_in(part)]


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value) if not isinstance(value, Exception) else str(value)
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= 80 else text[:77] + "…"
