"""Registered functions, and the nearest names to an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..model.did_you_mean import meant
from ..model.errors import UnknownFunction
from ..model.function_spec import FunctionSpec
from ..model.name import RESERVED
from .argument_check import ArgumentCheck

#: Most names that a message lists when none is near; characters of an unknown name that it shows.
LISTED = 5
SHOWN_NAME = 100


class KnownFunctions:
    """The registry as the gateway last saw it."""

    def __init__(self) -> None:
        self._specs: dict[str, FunctionSpec] = {}
        self._checks: dict[str, ArgumentCheck] = {}

    def __len__(self) -> int:
        return len(self._specs)

    def replace(self, specs: Iterable[FunctionSpec]) -> None:
        """Replaces the whole registry. Reserved names, which versions before took, are not known: nobody submits to the
        platform's own functions."""
        before = self._specs
        self._specs = {spec.name: spec for spec in specs if not spec.name.startswith(RESERVED)}
        self._checks = {name: each for name, each in self._checks.items() if before[name] == self._specs.get(name)}

    def all(self) -> list[FunctionSpec]:
        """Every function, by name."""
        return [self._specs[name] for name in sorted(self._specs)]

    def get(self, name: str) -> FunctionSpec | None:
        """The function of this name, if there is one."""
        return self._specs.get(name)

    def check_arguments(self, spec: FunctionSpec, payload: bytes) -> None:
        """Raises InvalidPayload for a payload that does not fit the arguments that workers announced."""
        self.checker(spec)(payload)

    def checker(self, spec: FunctionSpec) -> Callable[[bytes], None]:
        """The check of payloads of one function, for many of them. It raises InvalidPayload."""
        check = self._checks.get(spec.name)
        if check is None:
            check = self._checks[spec.name] = ArgumentCheck(spec)
        return check.check

    def check(self, name: str) -> FunctionSpec:
        """The function of this name. Raises UnknownFunction with the nearest names and what to do."""
        spec = self._specs.get(name)
        if spec is None:
            raise UnknownFunction(self.unknown(name))
        return spec

    def unknown(self, name: str) -> str:
        """The message for a name that nobody registered."""
        said = f"no function {name[:SHOWN_NAME]!r} is registered"
        if not self._specs:
            return f"{said}: none is yet. Start a worker that has it: `tailrace worker MODULE`"
        if near := meant(name[:SHOWN_NAME], self._specs, "", most=3):
            return f"{said}: {near} (`tailrace function list` shows all)"
        names = sorted(self._specs)
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        return (
            f"{said}: there are {', '.join(names[:LISTED])}{more}. Start a worker that has it: `tailrace worker MODULE`"
        )
