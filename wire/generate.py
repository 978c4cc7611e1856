"""Writes the Python code of the .proto files, or checks that what is committed is fresh.

    python -m tailrace.wire.generate            # write
    python -m tailrace.wire.generate --check    # exit 1 when stale

protoc gets a virtual root (`-Itailrace/wire/v1=…`), so that the generated imports are the package's own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

HERE = Path(__file__).resolve().parent / "v1"
SUFFIXES = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py")


def generate(target: Path) -> dict[str, str]:
    """Runs protoc into `target` and returns the text of each generated file by its name."""
    from grpc_tools import protoc

    protos = sorted(HERE.glob("*.proto"))
    arguments = [
        "protoc",
        f"-Itailrace/wire/v1={HERE}",
        f"-I{resources.files('grpc_tools') / '_proto'}",
        f"--python_out={target}",
        f"--pyi_out={target}",
        f"--grpc_python_out={target}",
        *(f"tailrace/wire/v1/{proto.name}" for proto in protos),
    ]
    if protoc.main(arguments) != 0:
        sys.exit("protoc failed; see its messages above")
    written = target / "tailrace" / "wire" / "v1"
    return {path.name: path.read_text() for path in sorted(written.iterdir()) if path.name.endswith(SUFFIXES)}


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Writes or checks the generated code.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a file is stale")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fresh = generate(Path(folder))
    present = {path.name: path.read_text() for path in HERE.iterdir() if path.name.endswith(SUFFIXES)}
    if not options.check:
        for name in present.keys() - fresh.keys():
            (HERE / name).unlink()
        for name, text in fresh.items():
            (HERE / name).write_text(text)
        print(f"wrote {len(fresh)} files")
    elif fresh != present:
        stale = sorted(name for name in fresh.keys() | present.keys() if fresh.get(name) != present.get(name))
        sys.exit(f"stale: {', '.join(stale)}. Run `make generate` and commit the result.")
    else:
        print(f"{len(fresh)} generated files are fresh")


if __name__ == "__main__":
    main()
