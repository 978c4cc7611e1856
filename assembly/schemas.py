"""Writes the JSON Schemas of the configuration files, for editors: `python -m tailrace.assembly.schemas [--check]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ..tailers.schema import tailer_schema
from .files import MODELS

FOLDER = Path(__file__).resolve().parent.parent / "configs" / "schema"


def schemas() -> dict[str, str]:
    """Text of each schema file, by its name."""
    found = {
        f"{name.removesuffix('.yaml')}.json": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **model.model_json_schema(),
        }
        for name, model in MODELS.items()
    }
    found["tailer.json"] = tailer_schema()
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in sorted(found.items())}


def stale() -> list[str]:
    """Names of files that are missing, outdated or superfluous."""
    wanted = schemas()
    there = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


def main() -> None:
    """Writes the files; with --check it only names stale ones (exit status 1)."""
    if "--check" in sys.argv[1:]:
        if outdated := stale():
            sys.exit(f"stale: {', '.join(outdated)}; run python -m tailrace.assembly.schemas")
        return
    FOLDER.mkdir(exist_ok=True)
    for name in stale():
        (FOLDER / name).unlink(missing_ok=True)
    for name, text in schemas().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
