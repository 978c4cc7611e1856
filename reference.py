"""Writes the generated pages of docs/ from the code itself: `python -m tailrace.reference [--check]`.

The reference pages list commands, configuration, metrics and rules; the index of decisions is made of its pages' heads.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

from .foundation.config import Bytes, Seconds, models_in
from .model.units import duration_text, seconds

ROOT = Path(__file__).resolve().parent
FOLDER = ROOT / "docs"
#: The rooms of the index of rules, in the order of an item's way, with one line each.
ROOMS = {
    "tailers": "Tailers (consumers, connectors) read sources, push workloads and settle them.",
    "scheduler": "A scheduler decides who may run, when and where.",
    "runtime": "Workers run functions in executor processes.",
    "delay_service": "The delay service keeps parked items (delayed retries) until they are due.",
    "gateway": "A gateway takes submissions, answers questions and carries out operators' orders.",
    "stores": "Stores keep queue, logs, checkpoints, owners, ledger, dead letters and the rest, by kind and engine.",
    "sdk": "The SDK is what users import: functions, clients, and the protocol of a source.",
    "wire": "The wire carries calls and sessions between processes: a file per service, and what bears them.",
    "foundation": "The foundation is what every part stands on: clock, configuration, lifecycle, logs, object stores.",
    "model": "The model is the words, pure: workloads, outcomes, leases, retries, errors.",
    "assembly": "Assembly composes parts into processes.",
}


def pages() -> dict[str, str]:
    """The text of each page, by its path below docs/."""
    return {
        "reference/cli.md": _commands(),
        "reference/configuration.md": _configuration(),
        "reference/metrics.md": _metrics(),
        "reference/rules.md": _rules(),
        "decisions/README.md": _decisions(),
    }


def _commands() -> str:
    import typer.main

    from .cli import app

    lines = [
        "# The `tailrace` command",
        "",
        "Generated from the code: `make generate`. Exit codes: 0 done, 1 failed or not",
    ]
    lines += ["found, 2 the input is wrong, 3 the other side is not available for now.", ""]
    for path, command in _tree(typer.main.get_command(app), ()):
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        options = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
        usage = " ".join(["tailrace", *path, *(each.metavar or each.name.upper() for each in arguments)])
        lines += [f"## `{usage}`", "", inspect.cleandoc(command.help or ""), ""]
        if options:
            lines += ["| option | default | |", "|---|---|---|"]
            lines += [f"| {_option(each)} | {_default_of(each)} | {each.help} |" for each in options]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _tree(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _tree(command, (*path, name))
        else:
            yield (*path, name), command


def _option(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or 'VALUE'}"
    variable = f" ({option.envvar})" if option.envvar else ""
    names = " / ".join(", ".join(each) for each in (option.opts, option.secondary_opts) if each)
    return f"`{names}{value}`{variable}"


def _default_of(option: Any) -> str:
    """The default of an option; an option with a negative shows that one of its two names."""
    if option.secondary_opts and isinstance(option.default, bool):
        return f"`{(option.opts if option.default else option.secondary_opts)[0]}`"
    return _default(option.default)


def _default(value: Any) -> str:
    if value is None or value is False or value == "" or callable(value) or isinstance(value, type(...)):
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(f"`{each}`" for each in value)
    return f"`{value}`"


def _configuration() -> str:
    from .assembly.files import MODELS
    from .tailers.config import TailerConfig
    from .tailers.registry import BUILT_IN, INTERNAL, kind_of

    lines = [
        "# Configuration",
        "",
        "Generated from the code: `make generate`. Durations are seconds or text (`30s`, `1h30m`),",
    ]
    lines += [
        "sizes are bytes or text (`16MiB`). `${NAME}` and `${NAME:-default}` stand for environment variables.",
        "",
    ]
    for name, model in sorted(MODELS.items()):
        lines += [f"## `{name}`", "", *_model(model), *_below(model)]
    lines += ["## `tailers/*.yaml`", "", *_model(TailerConfig), *_below(TailerConfig)]
    for name in sorted(BUILT_IN.keys() - INTERNAL):
        lines += [f"## `source: {{kind: {name}, …}}`", "", *_model(kind_of(name).options)]
        lines += _below(kind_of(name).options)
    return "\n".join(lines).rstrip() + "\n"


def _metrics() -> str:
    from .model import metrics

    lines = [
        "# Metrics",
        "",
        "Generated from the code: `make generate`. Where each is read: [operating](../operating.md#metrics).",
        "Names are those of OpenTelemetry, as `--json` has them, and in Prometheus' text format.",
        "",
    ]
    parts = {
        "Stores, delay service and tailers": metrics.NODE,
        "A gateway": metrics.GATEWAY,
        "Stores that are served apart": metrics.STORE,
        "A scheduler": metrics.SCHEDULER,
        "A worker": metrics.WORKER,
        "Every process": metrics.PROCESS,
    }
    for part, catalogue in parts.items():
        lines += [f"## {part}", "", "| name | in Prometheus | kind | unit | |", "|---|---|---|---|---|"]
        for metric in catalogue:
            kind = metric.kind
            lines.append(f"| `{metric.name}` | `{metric.prometheus}` | {kind} | `{metric.unit}` | {metric.help} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _model(model: type[BaseModel]) -> list[str]:
    """The docstring of a model, and a table of its keys."""
    about = inspect.cleandoc(model.__doc__ or "").splitlines()
    lines = ["```text", *about, "```", ""]
    if model.model_fields:
        lines += ["| key | default | |", "|---|---|---|"]
        for name, field in model.model_fields.items():
            lines.append(f"| `{field.alias or name}` | {_value(field)} | {field.description or ''} |")
        lines.append("")
    return lines


def _below(model: type[BaseModel]) -> list[str]:
    """Docstring and table of all models with keys of their own below this one, once each, with the keys that each may
    stand under."""
    keys: dict[type[BaseModel], list[str]] = {}
    left = [model]
    while left:
        for key, field in left.pop(0).model_fields.items():
            for inner in models_in(field.annotation):
                if inner not in keys:
                    left.append(inner)
                keys.setdefault(inner, []).append(f"`{field.alias or key}`")
    return [line for inner, under in keys.items() for line in (f"### {', '.join(under)}", "", *_model(inner))]


def _value(field: Any) -> str:
    if field.default_factory in (dict, list):
        return "none"
    if field.default_factory is not None:
        return "of this machine"  # a number of its cores
    if field.default is PydanticUndefined:
        return "required"
    value = _written(field.default, field)
    unit = value if isinstance(value, str) and not isinstance(field.default, str) else ""
    return f"`{unit or json.dumps(value, default=_plain)}`"


def _written(value: Any, field: Any) -> Any:
    """The value of a field in the form for a file: durations and sizes with their units."""
    if isinstance(value, BaseModel):
        below = type(value).model_fields
        return {each.alias or name: _written(getattr(value, name), each) for name, each in below.items()}
    marks = [*field.metadata, *_marks(field.annotation)]
    for kind, text in _TEXTS:
        if kind.__metadata__[0] in marks:
            many = isinstance(value, list | tuple)
            found = [text(each) if isinstance(each, int | float) else each for each in (value if many else [value])]
            return found if many else found[0]
    return value


def _marks(annotation: Any) -> list[Any]:
    """Annotations of all parts of a type."""
    mine = list(getattr(annotation, "__metadata__", ()))
    return [*mine, *(mark for part in typing.get_args(annotation) for mark in _marks(part))]


def _duration(value: float) -> Any:
    """A duration such as 30d, 1.5s or 100ms; a number where the text would not say it exactly."""
    text = f"{value:g}s" if 1 <= value < 60 else duration_text(value)
    return text if value and seconds(text) == value else value


def _size(value: float) -> Any:
    """A size such as 16MiB; a number where it is no whole number of a unit."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value and value % step == 0:
            return f"{int(value) // step}{unit}"
    return value


_TEXTS: tuple[tuple[Any, Callable[[float], Any]], ...] = ((Seconds, _duration), (Bytes, _size))


def _plain(value: Any) -> Any:
    """The plain value of a default, which is no secret, whatever its field may hold."""
    return value.get_secret_value() if isinstance(value, SecretStr) else list(value)


def _rules() -> str:
    """The index of rules: a table for each folder of each room, folders named `rules` first."""
    lines = [
        "# Index of rules",
        "",
        "Generated from the first sentence of each module: `make generate`. One rule lies in one file, which bears its",
        "name. Rules in folders named `rules` and in `model` are pure: state, event and time are arguments. The",
        "[architecture](../architecture.md) has the picture.",
        "",
    ]
    for room, about in ROOMS.items():
        lines += [f"## `{room}`", "", about, ""]
        folders: dict[Path, list[Path]] = {}
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in {".py", ".sql"} and path.name != "__init__.py" and "_pb2" not in path.name:
                folders.setdefault(path.parent, []).append(path)
        for folder in sorted(folders, key=lambda each: (each.name not in {"rules", "model"}, each)):
            lines += [f"### `{folder.relative_to(ROOT).as_posix()}/`", "", "| rule | file | |", "|---|---|---|"]
            lines += [_rule(path) for path in folders[folder]]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _rule(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        about = ast.get_docstring(ast.parse(text)) or ""
    else:
        about = "\n".join(line.removeprefix("--").strip() for line in text.splitlines() if line.startswith("--"))
    name = path.stem.lstrip("_").replace("_", " ")
    target = f"../../{path.relative_to(ROOT).as_posix()}"
    return f"| {name} | [{path.name}]({target}) | {first_sentence(about)} |"


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, in one line and as a cell of a table."""
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    found = re.match(r".+?[.?!](?=\s+[^a-z\s]|$)", paragraph)
    return (found[0] if found else paragraph).replace("|", "\\|")


def _decisions() -> str:
    """The index of decisions: a line for each page of docs/decisions/, out of its title and its second line."""
    lines = [
        "# Decisions",
        "",
        "Choices that are not obvious, one page each: the context, the decision, its consequences, and what would",
        "change it. Generated from the pages: `make generate`.",
        "",
        "| | decision | about | date |",
        "|---|---|---|---|",
    ]
    for path in sorted((FOLDER / "decisions").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        found = re.match(r"# (\d+)\. (.+)\n\nDecided ([\d-]+) · (.+)\n", text)
        if found is None:
            raise SystemExit(f"{path.name}: begin with '# NUMBER. Title' and 'Decided YYYY-MM-DD · part'")
        number, title, date, about = found.groups()
        lines.append(f"| {number} | [{title}]({path.name}) | {about} | {date} |")
    return "\n".join(lines) + "\n"


def stale() -> list[str]:
    """The pages that are missing or outdated."""
    return [
        name
        for name, text in pages().items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text(encoding="utf-8") != text
    ]


def main() -> None:
    """Writes the pages; with --check it only names stale ones (exit status 1)."""
    outdated = stale()
    if "--check" in sys.argv[1:]:
        if outdated:
            sys.exit(f"stale: {', '.join(outdated)}; run python -m tailrace.reference")
        return
    for name, text in pages().items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
