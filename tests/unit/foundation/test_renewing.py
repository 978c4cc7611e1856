"""Certificates that are made anew where they lie, and revoked though their files are gone."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from scenes.fleet import DAY, Fleet

from tailrace.foundation.certificates import Certificates
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.foundation.issuing import Authority
from tailrace.foundation.renewing import all_renewed, begun, renewed
from tailrace.model.caller import ROLES
from tailrace.model.errors import ConfigError, Conflict, InvalidRequest
from tailrace.testing.clock import ManualClock


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return Fleet(tmp_path / "fleet", monkeypatch)


def now() -> float:
    return SYSTEM_CLOCK.wall()


def serial(folder: Path) -> int:
    return x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes()).serial_number


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def revoked(folder: Path) -> set[int]:
    return {number for _, number in Certificates(folder).now().revoked}


def test_a_part_is_renewed_in_its_place_and_goes_on_without_a_restart(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a part that serves at two hosts, of which a process has the certificate
    folder = fleet.issue("gateway", "g1", hosts=("10.0.0.1", "gate.example.org"), ago=20, days=30)
    clock = ManualClock()
    clock.advance(now() - clock.wall())
    running = Certificates(folder, clock)
    former = running.now()
    # And it trusts two authorities, as during a change
    other = Fleet(fleet.folder.parent / "other", monkeypatch, "f1").folder / "ca.crt"
    both = (folder / "ca.crt").read_bytes() + other.read_bytes()
    (folder / "ca.crt").write_bytes(both)
    # When it is renewed
    assert renewed(fleet.authority, folder.name, now()).done
    # Then the process has the new one: the same caller and hosts, as many days, the same trust, another key
    assert (folder / "ca.crt").read_bytes() == both
    clock.advance(1.5)
    found = running.now()
    assert (running.trouble, found.caller) == ("", former.caller)
    assert found.until == pytest.approx(now() + 30 * DAY, abs=100) and found.key != former.key
    line = fleet.authority.lying(folder.name)
    assert line is not None and {"10.0.0.1", "gate.example.org", "localhost"} <= {*line.hosts}
    # And one that only calls does not serve by it, and one of its own host alone still does
    caller, here = fleet.issue("worker", "w"), fleet.issue("node", "n", hosts=("localhost",))
    for each, serves in ((caller, False), (here, True)):
        renewed(fleet.authority, each.name, now(), 7)
        line = fleet.authority.lying(each.name)
        assert line is not None and bool(line.hosts) is serves
        assert line.until == pytest.approx(now() + 7 * DAY, abs=100)


def test_what_ends_soon_has_ended_or_was_interrupted_is_renewed_and_nothing_else(fleet: Fleet) -> None:
    # Given parts whose certificates end late, soon, ended; one renewal that died between its files, and one revoked
    late, soon = fleet.issue("worker", "late", days=60), fleet.issue("worker", "soon", days=5)
    ended = fleet.issue("worker", "ended", ago=40)
    half, lost, bad = (fleet.issue("worker", name, days=60) for name in ("half", "lost", "bad"))
    (half / "tls.key").write_bytes((late / "tls.key").read_bytes())
    (lost / "tls.crt").unlink()
    fleet.authority.revoke(bad.name, now())
    # And folders of others: a certificate of another fleet, and one that is no certificate, of which nothing is known
    others, torn = fleet.folder / "others", fleet.folder / "torn"
    for folder, text in ((others, (late / "tls.crt").read_bytes().replace(b"A", b"B")), (torn, b"x")):
        folder.mkdir()
        (folder / "tls.crt").write_bytes(text)
    before = {folder: files(folder) for folder in (late, others, torn, bad)}
    # When all are renewed that end within ten days
    found = all_renewed(fleet.authority, now(), within=10)
    # Then those are whole again, and the rest is as it was, with a reason
    assert {each.folder for each in found if each.done} == {soon, ended, half, lost}
    for folder in (soon, ended, half, lost):
        assert str(Certificates(folder).now().caller) == f"worker {folder.name.removeprefix('worker-')} of fleet f1"
    assert before == {folder: files(folder) for folder in before}
    why = {each.folder.name: each.why for each in found if not each.done}
    assert why["worker-late"] == "" and "was revoked: name this folder" in why["worker-bad"]
    assert "not of the authority" in why["others"] and "not of the authority" in why["torn"]
    # And a second time nothing is due
    assert not any(each.done for each in all_renewed(fleet.authority, now(), within=4))
    with pytest.raises(ConfigError, match=r"no certificate that the authority in .* issued"):
        renewed(fleet.authority, "torn", now())


@pytest.mark.parametrize("part", ["", ".", "..", "../fleet", "/etc", "a/b", "x\0y", "\ud800/"])
def test_a_part_is_a_folders_name_and_no_way_out(fleet: Fleet, part: str) -> None:
    with pytest.raises(InvalidRequest, match="is no folder of a certificate"):
        renewed(fleet.authority, part, now())
    with pytest.raises(InvalidRequest, match="is no folder of a certificate"):
        fleet.authority.revoke(part, now())


def test_former_certificates_of_a_caller_are_revoked_too(fleet: Fleet) -> None:
    # Given a part whose key leaked, and that was issued anew; another one in a folder of another name; one that ended
    node = fleet.issue("node", "n")
    leaked = serial(fleet.issue("worker", "gpu-1"))
    ended = serial(fleet.issue("worker", "gpu-1", ago=40))
    again = serial(fleet.issue("worker", "gpu-1"))
    other = serial(fleet.authority.issue("worker", "gpu-1", (), now(), at="second"))
    stays = serial(fleet.issue("worker", "gpu-2"))
    # When it is revoked, then every one that has not ended is, and no other
    assert [each.serial for each in fleet.authority.revoke("worker-gpu-1", now())] == [leaked, again, other]
    assert revoked(node) == {leaked, again, other} and not {ended, stays} & revoked(node)
    # And one alone by its serial number, also one that nobody knows
    assert [each.caller.name for each in fleet.authority.revoke_serial(stays, now())] == ["gpu-2"]
    assert fleet.authority.revoke_serial(4711, now()) == []
    assert revoked(node) == {leaked, again, other, stays, 4711}
    # And what has no folder any more
    gone = fleet.issue("worker", "gone")
    for path in gone.iterdir():
        path.unlink()
    gone.rmdir()
    [one] = fleet.authority.revoke("worker-gone", now())
    assert one.serial in revoked(node)
    with pytest.raises(ConfigError, match="every certificate of worker old of fleet f1 has ended"):
        fleet.authority.revoke(fleet.issue("worker", "old", ago=40).name, now())


def test_what_was_issued_before_there_was_a_book_is_noted_before_it_is_gone(fleet: Fleet) -> None:
    former = serial(fleet.issue("worker", "w"))
    (fleet.folder / "issued.jsonl").unlink()
    fleet.issue("worker", "w")
    assert former in {each.serial for each in fleet.authority.revoke("worker-w", now())}


def test_a_broken_book_is_said_and_keeps_nobody_from_revoking_one(fleet: Fleet) -> None:
    folder = fleet.issue("worker", "w")
    for text in ("{", '{"serial": 5}', '{"serial": "zz"}', "[]", '"x"', "\x00"):
        (fleet.folder / "issued.jsonl").write_text(text + "\n")
        with pytest.raises(ConfigError, match=r"issued.jsonl, line 1: expected serial, caller"):
            fleet.authority.revoke("worker-w", now())
    fleet.authority.revoke_serial(serial(folder), now())
    assert serial(folder) in revoked(folder)


def test_a_full_disk_in_the_middle_changes_nothing(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a disk that is full at the n-th file
    folder = fleet.issue("worker", "w", days=5)
    before = files(folder)
    for room in range(4):
        left = iter(range(room))

        def full(descriptor: int, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            # When it is renewed, then that is said, and what lay there lies there still, and nothing beside it
            with pytest.raises(ConfigError, match=r"worker-w: No space left|fleet: No space left"):
                renewed(fleet.authority, "worker-w", now())
        assert files(folder) == before
        assert [path.name for path in fleet.folder.iterdir() if path.name.startswith(".")] == []
    # And with room it is
    assert renewed(fleet.authority, "worker-w", now()).done and files(folder) != before
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ConfigError, match="No space left"):
            Authority.made(fleet.folder.parent / "new", "f2", now())
    assert [*(fleet.folder.parent / "new").iterdir()] == []


def test_two_that_issue_at_once_mix_nothing(fleet: Fleet) -> None:
    # When several issue the same part and others at the same time
    errors: list[BaseException] = []

    def issue(number: int) -> None:
        try:
            for name in ("same", f"own-{number}"):
                Authority.of(fleet.folder).issue("worker", name, (), now())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=issue, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    # Then each part has a key that fits, and the book has all of them
    assert errors == []
    for name in ("same", *(f"own-{number}" for number in range(6))):
        assert str(Certificates(fleet.folder / f"worker-{name}").now().caller) == f"worker {name} of fleet f1"
    assert len(fleet.authority.issued()) == 12


def test_an_init_that_died_is_completed(tmp_path: Path, fleet: Fleet) -> None:
    # Given an authority's key alone, as one leaves that died after its first file
    folder = tmp_path / "half"
    folder.mkdir()
    key = (fleet.folder / "ca.key").read_bytes()
    (folder / "ca.key").write_bytes(key)
    # When it is begun again, then with that key, and every role is missing
    authority, missing = begun(folder, "shop", now())
    assert (authority.fleet, missing, (folder / "ca.key").read_bytes()) == ("shop", [*ROLES], key)
    # And where it died between two roles, or in one, those that have no certificate
    for role in ROLES[:3]:
        authority.issue(role, role, (), now(), at=role)
    (folder / ROLES[2] / "tls.key").unlink()
    assert begun(folder, "", now())[1] == [*ROLES[2:]]
    with pytest.raises(Conflict, match="is of the fleet shop, and not of other"):
        begun(folder, "other", now())
    # And an authority whose key is elsewhere is no such folder, nor is a key that is none
    (folder / "ca.key").unlink()
    with pytest.raises(Conflict, match="has an authority already"):
        begun(folder, "", now())
    (folder / "ca.crt").unlink()
    (folder / "ca.key").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"ca.key: expected a private key in PEM"):
        begun(folder, "", now())
