"""Loads the functions of the modules that a person names: `pkg.module`, `path/to/file.py`, `module:name`.

There is no registry: a function belongs to the worker whose modules show it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from ..model.did_you_mean import meant
from ..model.errors import DeclarationError, TailraceError, UserError
from ..model.plain_text import plain
from ..sdk.function import Function
from .kept_sources import loader_of


@dataclass(frozen=True, slots=True)
class LoadedFunctions:
    """The functions that a worker runs. Executors load `modules` again in their own process.

    Invariant: names are unique, and all functions of a pool have one isolation.
    """

    modules: tuple[str, ...]
    functions: dict[str, Function[..., Any]]


def load_functions(modules: Sequence[str]) -> LoadedFunctions:
    """Imports the modules and collects their functions. Raises UserError naming module and line for a module that
    cannot be imported, shows no functions, or declares a name twice."""
    if not modules:
        raise UserError("no modules: name at least one that declares functions, such as my_app.tasks or tasks.py")
    found: dict[str, Function[..., Any]] = {}
    for spec in modules:
        for declared in _functions(spec):
            other = found.setdefault(declared.name, declared)
            if other is not declared:
                raise DeclarationError(
                    f"two functions are called {declared.name!r}: {other.where} and {declared.where}. "
                    "Give one of them another name: @tailrace.function(name=…)"
                )
            declared.prepared()
    _check_pools(found)
    return LoadedFunctions(tuple(_absolute(spec) for spec in modules), found)


def _functions(spec: str) -> Iterator[Function[..., Any]]:
    module, name = _load(spec)
    # Not isinstance: a lazy object (such as a web framework's current request) may raise when asked for its class.
    declared = {key: value for key, value in vars(module).items() if issubclass(type(value), Function)}
    if name:
        if name not in declared:
            hint = meant(name, declared, f"functions there: {', '.join(declared) or 'none'}")
            raise UserError(f"{spec!r}: {module.__name__} has no function {name!r} ({hint})")
        yield declared[name]
        return
    functions = list({id(value): value for value in declared.values()}.values())
    if not functions:
        raise UserError(f"{spec!r} declares no functions: put @tailrace.function above an async def or a def")
    yield from functions


def _load(spec: str) -> tuple[ModuleType, str]:
    target, name = _split(spec)
    is_file = target.endswith(".py") or os.sep in target
    if is_file and not Path(target).is_file():
        raise UserError(f"{spec!r}: there is no file {Path(target).resolve()}")
    folder = _folder(target)
    _see(str(folder))
    try:
        module = _import_file(spec, Path(target)) if is_file else importlib.import_module(target)
    except ModuleNotFoundError as error:
        if not is_file and error.name is not None and (target == error.name or target.startswith(f"{error.name}.")):
            raise UserError(
                f"there is no module {target!r} (looked in {Path.cwd()} and on sys.path); "
                "name a module as import does, or a file as path/to/file.py"
            ) from None
        raise _failed(spec, error, folder) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _failed(spec, error, folder) from error
    if not is_file:
        _is_theirs(spec, target.partition(".")[0], folder)
    return module, name


def _is_theirs(spec: str, top: str, folder: Path) -> None:
    """Raises UserError where a module of this name in the folder is not the one that was imported."""
    file = next((file for file in (folder / f"{top}.py", folder / top / "__init__.py") if file.is_file()), None)
    found = getattr(sys.modules.get(top), "__file__", None)
    if file is None or (found is not None and Path(found).resolve() == file.resolve()):
        return
    whose = "of Python's standard library" if top in sys.stdlib_module_names else f"at {found}"
    raise UserError(
        f"{spec!r} is the module {whose}, and not {file}, since a folder of functions comes last on Python's path: "
        "rename the file, or name it by its path"
    )


def shadows(modules: Sequence[str]) -> list[Path]:
    """The files beside these modules that bear the name of a module of Python's standard library: an import of that
    name means Python's."""
    folders = dict.fromkeys(_folder(_split(spec)[0]) for spec in modules)
    return [file for folder in folders for file in _shadows(folder)]


def _folder(target: str) -> Path:
    is_file = target.endswith(".py") or os.sep in target
    return Path(target).resolve().parent if is_file else Path.cwd()


def _shadows(folder: Path) -> list[Path]:
    """The files of `shadows` in one folder. Nothing but names is looked at of other folders there: one may be a file
    system that hangs."""
    try:
        names = {name.removesuffix(".py"): name for name in sorted(os.listdir(folder))}  # noqa: PTH208 - names alone
    except OSError:
        return []
    found = (folder / names[name] for name in sorted(names.keys() & sys.stdlib_module_names))
    return [each for each in found if each.suffix == ".py" or (each / "__init__.py").is_file()]


def _import_file(spec: str, path: Path) -> ModuleType:
    path = path.resolve()
    name = path.stem
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == str(path):
            return known
        name = f"tailrace_file_{abs(hash(str(path)))}"  # the plain name belongs to another module
        if name in sys.modules:
            return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, path, loader=loader_of(path))
    if found is None or found.loader is None:
        raise UserError(f"{spec!r}: {path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _failed(spec: str, error: BaseException, folder: Path) -> TailraceError:
    if isinstance(error, SyntaxError):
        where = f"{error.filename}:{error.lineno}"
        return UserError(f"{spec!r} cannot be imported: {where}: {type(error).__name__}: {error.msg}")
    text = plain(error, 300).strip().partition("\n")[0]
    kind = DeclarationError if isinstance(error, DeclarationError) else UserError
    for file in _shadows(folder) if isinstance(error, ImportError | AttributeError) else ():
        name = file.parent.name if file.stem == "__init__" else file.stem
        if f"'{name}'" in text:
            text += (
                f". {file} bears the name of a module of Python's standard library, which is the one meant: rename it"
            )
    return kind(f"{spec!r} cannot be imported: {_line(error.__traceback__)}{type(error).__name__}: {text}")


def _line(trace: TracebackType | None) -> str:
    """The innermost line of the user's own code: neither the import system's nor this package's."""
    ours = str(Path(__file__).resolve().parents[1])
    where = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        mine = file.startswith((f"{ours}{os.sep}sdk", f"{ours}{os.sep}runtime"))
        if not file.startswith("<") and not mine and f"{os.sep}importlib{os.sep}" not in file:
            where = f"{file}:{trace.tb_lineno}: "
        trace = trace.tb_next
    return where


def _see(folder: str) -> None:
    """Makes the modules of a folder importable, none of which takes the place of Python's or of an installed one."""
    if folder not in sys.path:
        sys.path.append(folder)


def _split(spec: str) -> tuple[str, str]:
    target, colon, name = spec.rpartition(":")
    return (target, name) if colon and name.isidentifier() else (spec, "")


def _absolute(spec: str) -> str:
    """The spec as another process with another directory would find it."""
    target, name = _split(spec)
    if not (target.endswith(".py") or os.sep in target):
        return spec
    path = str(Path(target).resolve())
    return f"{path}:{name}" if name else path


def _check_pools(functions: dict[str, Function[..., Any]]) -> None:
    first: dict[str, Function[..., Any]] = {}
    for declared in functions.values():
        other = first.setdefault(declared.spec.pool, declared)
        if other.spec.isolation != declared.spec.isolation:
            raise DeclarationError(
                f"pool {declared.spec.pool!r} has functions of both isolations: {other.name!r} is "
                f"{other.spec.isolation}, {declared.name!r} is {declared.spec.isolation}; give one another pool"
            )
