"""The run directory: its user's alone, or its group's; and who is shown the content of its card."""

from __future__ import annotations

import grp
import os
import socket
import stat
import struct
import sys
from pathlib import Path

import pytest

from tailrace.foundation import run_dir
from tailrace.foundation.port_listeners import asked, listeners, reached, read
from tailrace.foundation.run_dir import CARD, VARIABLE, Card, RunDir, cards, nobody_known, places
from tailrace.model.errors import ConfigError
from tailrace.wire.shared_secret import CallerCheck, Proof, showable, strangers_among

MINE = 1000


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_for_its_user_alone_and_the_secret_stays(tmp_path: Path) -> None:
    # Given a directory that is not there, and two parts that take it
    path = tmp_path / "deep" / "run"
    first, second = RunDir(path), RunDir(path)
    card = first.open()
    # Then both have one secret, which a later run finds too, and nobody else can read
    assert second.open() == card and len(card.secret) == 64
    first.close(), second.close()
    assert RunDir(path).open().secret == card.secret
    assert (mode(path), mode(path / CARD)) == (0o700, 0o600)
    assert [each.name for each in path.iterdir()] == [CARD]


def test_what_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "run"
    RunDir(path).open()
    path.chmod(0o777)
    (path / CARD).chmod(0o644)
    RunDir(path).open()
    assert (mode(path), mode(path / CARD)) == (0o700, 0o600)


def test_a_group_may_read_and_not_write(tmp_path: Path) -> None:
    group = grp.getgrgid(os.getegid()).gr_name
    RunDir(tmp_path / "run", group).open()
    assert (mode(tmp_path / "run"), mode(tmp_path / "run" / CARD)) == (0o750, 0o640)
    with pytest.raises(ConfigError, match="there is no group 'no such group'"):
        RunDir(tmp_path / "run", "no such group")


def test_a_link_or_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(ConfigError, match="is a link or a file"):
            RunDir(tmp_path / name).open()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_somebody_else_s_directory_or_card_is_refused(tmp_path: Path) -> None:
    # Given a directory that another user laid out, and one of ours with their card in it
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    with pytest.raises(ConfigError, match=f"belongs to .*, and this is run by root; remove it, or set {VARIABLE}"):
        RunDir(theirs).open()
    RunDir(mine).open()
    os.chown(mine / CARD, 65534, 65534)
    with pytest.raises(ConfigError, match="not a card of tailrace, or another user's"):
        RunDir(mine).open()
    assert [*cards({VARIABLE: str(mine)})] == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"secret": 7}', '{"secret": "short"}', '{"secret": "' + "\\n" * 64 + '"}']
)
def test_what_is_no_card_is_said(tmp_path: Path, text: str) -> None:
    RunDir(tmp_path).open()
    (tmp_path / CARD).write_text(text)
    with pytest.raises(ConfigError, match="not a card of tailrace"):
        RunDir(tmp_path).open()
    assert [*cards({VARIABLE: str(tmp_path)})] == []


def test_a_card_that_was_removed_is_made_again_as_it_was(tmp_path: Path) -> None:
    folder = RunDir(tmp_path / "run")
    card = folder.open()
    (tmp_path / "run" / CARD).unlink()
    assert folder.restored(card.secret) == card


def test_it_is_looked_for_in_the_chosen_place_else_in_each_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_dir.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    usual = tmp_path / "tmp" / f"tailrace-{os.geteuid()}"
    assert places({VARIABLE: "/chosen", "XDG_RUNTIME_DIR": str(tmp_path)}) == [Path("/chosen")]
    assert places({"XDG_RUNTIME_DIR": str(tmp_path)}) == [tmp_path / "tailrace", usual]
    assert places({"XDG_RUNTIME_DIR": "/nowhere"}) == places({}) == [usual]
    # A service without the variable, and its user's shell with it, find each other
    card = RunDir(usual).open()
    assert [*cards({"XDG_RUNTIME_DIR": str(tmp_path)})] == [card]


def test_a_number_that_stands_for_many_users_is_nobody_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users, number = tmp_path / "users", tmp_path / "number"
    number.write_text("65534\n")
    users.write_text("         0          0 4294967295\n")
    assert nobody_known(users, number) is None
    assert nobody_known(tmp_path / "none", number) is None
    # Given a user namespace that knows one user, and be it that one
    for known in ("1000 1000 1", "65534 65534 1", "0 100000 65536"):
        users.write_text(f"{known}\n")
        assert nobody_known(users, number) == 65534
    # Then a card of whom it does not know is none: whoever listens may be another one of them
    card = RunDir(tmp_path / "run").open()
    assert [*cards({VARIABLE: str(tmp_path / "run")})] == [card]
    monkeypatch.setattr(run_dir, "nobody_known", lambda: card.owner)
    assert [*cards({VARIABLE: str(tmp_path / "run")})] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_in_a_usual_place_only_the_users_own_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a directory that another user laid out where this one's would be
    monkeypatch.setattr(run_dir.tempfile, "gettempdir", lambda: str(tmp_path))
    usual = tmp_path / f"tailrace-{os.geteuid()}"
    card = RunDir(usual).open()
    for path in (usual, usual / CARD):
        os.chown(path, 65534, 65534)
    # Then it is passed by, unless it is chosen
    assert [*cards({})] == []
    assert [each.secret for each in cards({VARIABLE: str(usual)})] == [card.secret]


# ---- to whom it is shown


def test_a_secret_is_shown_to_its_own_user_and_to_root_only() -> None:
    mine, shared = Card(Path("/run/mine"), MINE, "a" * 64), Card(Path("/run/ops"), 7, "b" * 64)
    known = [mine, shared]
    assert showable(known, {MINE}) == (mine.secret,)
    assert showable(known, {7, 0}) == (shared.secret,)
    assert showable(known, {0}) == (mine.secret, shared.secret)
    assert showable(known, {MINE, 8}) == showable(known, {8}) == showable(known, set()) == ()
    assert showable(known, None) == (mine.secret, shared.secret), "a system that does not say who listens"


def test_who_listens_at_a_port_is_read_from_what_the_kernel_says(tmp_path: Path) -> None:
    def bound(to: str) -> str:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in to else socket.AF_INET, to)
        return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))

    def row(to: str, port: str, state: str, user: int) -> str:
        return (
            f"0: {bound(to)}:{port} 00:0000 {state} 00000000:00000000 00:00000000 00000000  {user}        0 1 1 0 10 0"
        )

    lines = [row("127.0.0.1", "2252", "0A", 1000), row("127.0.0.1", "2252", "01", 5), row("0.0.0.0", "2253", "0A", 6)]
    (tmp_path / "tcp").write_text("\n".join(["sl  local_address", *lines, row("127.0.0.2", "2252", "0A", 7)]))
    lines = [row("::ffff:127.0.0.1", "2252", "0A", 9), row("::1", "2252", "0A", 8), row("::", "2252", "0A", 11)]
    (tmp_path / "tcp6").write_text("\n".join(["sl", *lines]))
    tables = (tmp_path / "tcp", tmp_path / "tcp6")
    found = read(0x2252, tables)
    # Who is at another address gets nothing of it, nor who is at all of them beside one at this
    assert found is not None and reached("127.0.0.1", found) == {1000, 9}
    assert reached("[::1]", found) == {8} and reached("localhost", found) == {1000, 9, 8}
    assert reached("127.0.0.3", found) == {11}, "bound to all addresses"
    wild = read(0x2253, tables)
    assert wild is not None and reached("127.0.0.1", wild) == {6}
    assert read(1, tables) == []
    assert read(1, (tmp_path / "none",)) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked so")
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_kernel_is_asked_who_listens(family: int, host: str) -> None:
    with socket.socket(family) as listening, socket.socket(family) as other:
        for each in (listening, other):
            each.bind((host, 0))
        listening.listen()
        port, free = listening.getsockname()[1], other.getsockname()[1]
        assert asked(port) == read(port) and len(asked(port)) == 1
        assert listeners(host, port) == listeners("localhost", port) == {os.geteuid()}
        assert listeners(host, free) == set()


def test_who_listens_and_is_neither_root_nor_a_known_user_is_a_stranger() -> None:
    assert strangers_among({MINE, 0, 7}, [MINE, 7]) == set() == strangers_among(set(), [MINE])
    assert strangers_among({MINE, 8}, [MINE, 7]) == {8}
    assert strangers_among(None, [MINE]) == set(), "a system that does not say who listens"


def test_nothing_is_shown_to_another_machine() -> None:
    assert Proof("gateway.example:8786").metadata() is None
    assert Proof("direct:@name").metadata() is None


def test_only_health_is_open_and_the_refusal_says_how_to_get_in() -> None:
    entry = CallerCheck(Card(Path("/run/tailrace"), os.geteuid(), "a" * 64))
    health, purge = "/grpc.health.v1.Health/Check", "/tailrace.v1.Operators/Call"
    assert entry.admits_call(health, ()) and not entry.admits_call(purge, ())
    assert entry.admits_call(purge, (("x", "y"), ("tailrace-secret", "b" * 64), ("tailrace-secret", "a" * 64)))
    assert not entry.admits_call(purge, (("tailrace-secret", "é" * 64),))
    assert not entry.admits_call("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", None)
    assert f"{VARIABLE} is /run/tailrace" in entry.refusal() and "access.yaml" in entry.refusal()
    assert entry.admits_user(os.geteuid()) and entry.admits_user(0) and not entry.admits_user(54_321)
    shared = CallerCheck(entry.card, "ops")
    assert f"members of the group 'ops' get in with {VARIABLE}=/run/tailrace" in shared.refusal()
    assert shared.admits_user(54_321), "its group may; it shows the secret all the same"
