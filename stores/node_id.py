"""The name of a node: made once, and kept with the files of its data directory."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

NAME = "tailrace.node"


def node_id(folder: Path) -> str:
    """The name of the node with this folder, made where there is none: a random part, then the host and the folder of
    that moment."""
    file = folder / NAME
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        name = f"{secrets.token_hex(8)} {socket.gethostname()}:{folder}"
        beside = file.with_suffix(".new")
        beside.write_text(name + "\n")
        beside.replace(file)
        return name


def same_node(one: str, other: str) -> bool:
    """Whether two names are of one node, wherever its folder was moved."""
    return one.split(" ", 1)[0] == other.split(" ", 1)[0]
