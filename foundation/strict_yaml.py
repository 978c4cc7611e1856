"""YAML as plain values with the line of each: strict and bounded.

Read as nodes (PyYAML's safe loader, never objects). Refused: duplicate keys, tags, merge keys, files past the bounds
(nesting, values with every use of an alias counted, long numbers). `${VAR}` and `${VAR:-default}` stand for environment
variables inside scalars; `$${` is a literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from ..model.errors import ConfigError

#: Largest file, deepest nesting, most values (aliases counted each time they are used), longest number.
MAX_BYTES = 1 << 20
MAX_DEPTH = 20
MAX_NODES = 20_000
MAX_NUMBER = 64

_VARIABLE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\$\{")
_PLAIN_COLLECTIONS = ("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")

Place = tuple[str | int, ...]


class Document:
    """One YAML document as plain values, with the line of each."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self.name = name
        self._environment = environment
        self._lines: dict[Place, int] = {}
        #: The text in the file where a variable stood: messages show this, never the variable's value.
        self._written: dict[Place, str] = {}
        self._nodes = 0
        self._substituted = 0
        self.errors: list[str] = []

    def read(self, text: str) -> Any:
        """Reads the values. Mistakes in single ones are added to `errors`; one that stops reading raises
        ConfigError."""
        try:
            node = _Bounded.compose(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise ConfigError(f"{self.name}:{line}: not valid YAML: {error.problem or error.context}") from None
        except yaml.YAMLError as error:
            raise ConfigError(f"{self.name}: not valid YAML: {short(error)}") from None
        except _TooMuch as error:
            raise ConfigError(f"{self.name}:{error}") from None
        return None if node is None else self._value(node, (), 0)

    def _value(self, node: yaml.Node, path: Place, depth: int) -> Any:
        line = node.start_mark.line + 1
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ConfigError(f"{self.name}:{line}: more than {MAX_NODES} values (aliases count each time)")
        if depth > MAX_DEPTH:
            raise ConfigError(f"{self.name}:{line}: nested deeper than {MAX_DEPTH} levels")
        self._lines.setdefault(path, line)
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _PLAIN_COLLECTIONS:
            self.errors.append(f"{self.name}:{line}: tag {node.tag!r} is not allowed; write plain values")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
        return self._scalar(node, path, line)

    def _mapping(self, node: yaml.MappingNode, path: Place, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                self.errors.append(f"{self.name}:{line}: expected a plain key, such as `name:`")
                continue
            key = str(key_node.value)
            if key in found:
                self.errors.append(f"{self.name}:{line}: key {key!r} stands twice; keep one of them")
                continue
            self._lines[(*path, key)] = line
            found[key] = self._value(value_node, (*path, key), depth + 1)
        return found

    def _scalar(self, node: yaml.Node, path: Place, line: int) -> Any:
        text, tag = str(node.value), str(node.tag)
        if "${" in text:
            self._written[path] = text
            text = self._substitute(text, line)
            if getattr(node, "style", None) is not None:
                return text
            tag = _resolve(text)  # unquoted: 8786 from a variable is a number again
        kind = tag.removeprefix("tag:yaml.org,2002:")
        if kind in ("str", "timestamp") or (kind in ("int", "float") and ":" in text):
            return text  # 2026-11-21 and 10:30 stay texts; YAML 1.1 would make other values of them
        if kind not in ("int", "float", "bool", "null"):
            self.errors.append(f"{self.name}:{line}: tag {tag!r} is not allowed; write a plain value")
            return None
        try:
            if len(text) > MAX_NUMBER:
                raise ValueError
            return _construct(yaml.ScalarNode(tag, text))
        except (ValueError, KeyError, OverflowError, yaml.YAMLError):
            self.errors.append(f"{self.name}:{line}: {short(text)} cannot be read as a value")
            return None

    def _substitute(self, text: str, line: int) -> str:
        self._substituted += len(text)
        if self._substituted > MAX_BYTES:
            raise ConfigError(f"{self.name}:{line}: more than {MAX_BYTES} characters of text with variables")

        def replace(match: re.Match[str]) -> str:
            if match[0] == "$${":
                return "${"
            name = match["name"]
            if name is None:
                self.errors.append(f"{self.name}:{line}: expected ${{NAME}} or ${{NAME:-default}} in {text[:80]!r}")
                return ""
            value = self._environment.get(name)
            if match["default"] is not None:
                value = value or match["default"]  # as in a shell, ":-" also stands in for an empty variable
            if value is None:
                self.errors.append(
                    f"{self.name}:{line}: environment variable {name} is not set; set it or write ${{{name}:-default}}"
                )
                return ""
            return value

        return _VARIABLE.sub(replace, text)

    def place(self, location: Place) -> tuple[Place, int]:
        """The longest part of a pydantic location that is in the file (it also names union members), and its line."""
        path: Place = ()
        for part in location:
            if (*path, part) in self._lines:
                path = (*path, part)
        return path, self._lines.get(path, 1)

    def masked(self, text: str, path: Place, value: object) -> str:
        """The text, with references to variables in place of their values."""
        if path in self._written:
            return text.replace(short(value), self._written[path]).replace(repr(value), self._written[path])
        if any(written[: len(path)] == path for written in self._written) and not isinstance(value, str):
            return text.replace(short(value), "the value there")
        return text


class _TooMuch(Exception):
    """A bound is passed; the text starts with the line."""


class _Bounded(yaml.SafeLoader):
    """A loader that stops at the bounds while it reads, so that a hostile file costs no more than an ordinary one."""

    _depth = 0
    _count = 0

    @classmethod
    def compose(cls, text: str) -> yaml.Node | None:
        loader = cls(text)
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
        self._count += 1
        if self._count > MAX_NODES:
            raise _TooMuch(f"{line}: more than {MAX_NODES} values")
        if self._depth > MAX_DEPTH:
            raise _TooMuch(f"{line}: nested deeper than {MAX_DEPTH} levels")
        self._depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _resolve(text: str) -> str:
    """The tag of an unquoted text."""
    return str(yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False)))  # type: ignore[no-untyped-call]


def _construct(node: yaml.Node) -> Any:
    return yaml.constructor.SafeConstructor().construct_object(node)


def short(value: object) -> str:
    """A value in a message, at most 80 characters."""
    text = value if isinstance(value, str) else repr(value) if not isinstance(value, Exception) else str(value)
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= 80 else text[:77] + "…"
