"""Ports for parts to listen on."""

import socket
from pathlib import Path

import pytest

from tailrace.assembly import free_port as ports
from tailrace.assembly.free_port import FIRST, free_port


@pytest.fixture(autouse=True)
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that hands out ports from 20,000 on."""
    (tmp_path / "range").write_text("20000\t60999\n")
    monkeypatch.setattr(ports, "_RANGE", tmp_path / "range")


def test_a_free_port_is_none_that_connections_get() -> None:
    # When ports are asked for, then each can be listened on and lies below those that the kernel hands out
    for port in {free_port() for _ in range(20)}:
        assert FIRST <= port < 20_000
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", port))


def test_a_taken_port_is_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given that somebody listens on the first port that is tried
    with socket.socket() as holding:
        taken = free_port()
        holding.bind(("127.0.0.1", taken))
        tries = iter([taken, taken, other := free_port()])
        monkeypatch.setattr(ports.random, "randrange", lambda *_: next(tries))

        # Then the next one that is free is given
        assert free_port() == other


def test_where_all_are_taken_the_kernel_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given that every port that is tried is taken
    with socket.socket() as holding:
        holding.bind(("127.0.0.1", 0))
        taken = holding.getsockname()[1]
        monkeypatch.setattr(ports.random, "randrange", lambda *_: taken)

        # Then there is one all the same
        assert free_port() not in (0, taken)
