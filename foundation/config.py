"""Configuration from YAML files: every mistake at once, each with the file, the line, the key and what was expected.

Models validate; `strict_yaml.py` reads. Unknown keys are answered with the nearest known one, as Oban does at boot.
"""

from __future__ import annotations

import os
import stat
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema

from ..model.did_you_mean import meant
from ..model.errors import ConfigError, InvalidRequest, UserError
from ..model.name import NAME_LENGTH, NAME_PATTERN
from ..model.units import seconds, size, start_of
from .strict_yaml import MAX_BYTES, Document, Place, short

M = TypeVar("M", bound=BaseModel)


def _seconds(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f'{value!r} is not a duration: expected seconds, or text like "30s" or "1h30m"')
    try:
        return seconds(value)
    except InvalidRequest as error:
        raise ValueError(str(error)) from None


def _start(value: str) -> str:
    if value not in ("earliest", "latest"):
        try:
            start_of(value, 0.0)
        except InvalidRequest as error:
            raise ValueError(str(error)) from None
    return value


def _bytes(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f'{value!r} is not a size: expected bytes, or text like "16MiB"')
    try:
        return size(value)
    except InvalidRequest as error:
        raise ValueError(str(error)) from None


#: A duration in a model: seconds, or text like "30s".
Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}], "description": 'seconds, or text like "1h30m"'}),
]
#: A size in a model: bytes, or text like "16MiB".
Bytes = Annotated[
    int,
    BeforeValidator(_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], "description": 'bytes, or text like "16MiB"'}),
]
#: Where reading begins the first time, in a model: "earliest", "latest", how long before that, or a time.
Start = Annotated[str, AfterValidator(_start)]
#: A name in a model (model/name.py).
Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH, pattern=f"^{NAME_PATTERN}$")]


def load(path: Path, model: type[M], *, environment: Mapping[str, str] = os.environ) -> M:
    """The settings in a file. Raises ConfigError with every mistake found, each with its line."""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise ConfigError(f"{path}: not a file; expected a YAML file")
        if facts.st_size > MAX_BYTES:
            raise ConfigError(f"{path}: larger than {MAX_BYTES} bytes; a configuration is never that large")
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:  # a zero byte in the path
        raise ConfigError(f"{str(path)!r}: no such file") from None
    return loads(text, str(path), model, environment=environment)


def loads(text: str, name: str, model: type[M], *, environment: Mapping[str, str] = os.environ) -> M:
    """The settings in a text; `name` stands for the file in messages."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{name}: larger than {MAX_BYTES} bytes; a configuration is never that large")
    document = Document(name, environment)
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
        raise ConfigError("\n".join(_explain(error, document, model, value))) from None
    except UserError as error:
        raise ConfigError(f"{name}: {error}") from None


def _explain(error: ValidationError, document: Document, model: type[BaseModel], value: dict[str, Any]) -> list[str]:
    """Each mistake that the model found, in the order of the file."""
    found = []
    for each in error.errors(include_url=False):
        location = tuple(each["loc"])
        path, line = document.place(location)
        text = _sentence(each, path, location, _known_keys(model, location[:-1], value))
        found.append((line, f"{document.name}:{line}: {document.masked(text, path, each['input'])}"))
    return list(dict.fromkeys(text for _, text in sorted(found, key=lambda item: item[0])))


def _sentence(each: Any, path: Place, location: Place, known: list[str]) -> str:
    name = ".".join(map(str, path)) or "the file"
    if each["type"] == "extra_forbidden":
        key = str(location[-1])
        under = ".".join(map(str, path[:-1] if path and path[-1] == key else path))
        where = f" under {under}" if under else ""
        hint = meant(key, known, f"known keys: {', '.join(sorted(set(known)))}")
        return f"unknown key {key!r}{where}; {hint}" if known else f"unknown key {key!r}{where}"
    if each["type"] == "missing":
        return f"key {'.'.join(map(str, (*path, location[-1])))!r} is missing"
    message = str(each["msg"]).removeprefix("Value error, ")
    if each["type"] in ("model_type", "dict_type", "model_attributes_type"):
        message = "Input should be keys and values below it"
    expected = message.removeprefix("Input should be ")
    if expected == message:  # a sentence of the model's own
        return f"{name}: {message}"
    return f"{name}: expected {expected}, got {short(each['input'])}"


def _known_keys(model: type[BaseModel], path: Place, value: dict[str, Any]) -> list[str]:
    """The keys that a model takes at a place. A model whose keys depend on other values in the file (a source's options
    on its kind) says so itself, by `keys_under(path, value)`; None there means: ask the annotations."""
    own = getattr(model, "keys_under", None)
    told = own(path, value) if own is not None else None
    if told is not None:
        return list(told)
    models: list[Any] = [model]
    for part in path:
        found = [inner for each in models for inner in models_in(_annotation(each, part))]
        # A location also names list positions, dictionary keys and members of unions: those stay where they are.
        if not found and any(_annotation(each, part) is not None for each in models):
            return []
        models = found or models
    return [field.alias or name for each in models for name, field in each.model_fields.items()]


def _annotation(model: Any, key: str | int) -> Any:
    for name, field in getattr(model, "model_fields", {}).items():
        if key in (name, field.alias):
            return field.annotation
    return None


def models_in(annotation: Any) -> list[Any]:
    """The models that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in typing.get_args(annotation) for found in models_in(part)]
