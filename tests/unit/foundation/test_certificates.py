"""Certificates of a process: files that are taken from a folder, and files that are refused, with the words for it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from scenes.fleet import DAY, Fleet

from tailrace.foundation.certificates import FILE_BYTES, Certificates, certificates
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.foundation.issuing import Authority, shown
from tailrace.model.caller import ROLES
from tailrace.model.errors import ConfigError, Conflict, InvalidRequest
from tailrace.testing.clock import ManualClock


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return Fleet(tmp_path / "fleet", monkeypatch)


def read(folder: Path) -> Certificates:
    found = Certificates(folder)
    found.now()
    return found


def test_what_is_issued_is_taken_and_nobody_else_may_read_its_key(fleet: Fleet) -> None:
    old = os.umask(0)
    try:
        folders = [fleet.issue(role, "n-1") for role in ROLES]
    finally:
        os.umask(old)
    for folder, role in zip(folders, ROLES, strict=True):
        identity = read(folder).now()
        assert str(identity.caller) == f"{role} n-1 of fleet f1"
        assert stat.S_IMODE((folder / "tls.key").stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((fleet.folder / "ca.key").stat().st_mode) == 0o600
    assert [each.wrong for each in shown(fleet.folder, SYSTEM_CLOCK.wall())] == [""] * len(ROLES)


def test_a_list_of_revoked_certificates_is_in_force_where_it_lies_and_must_be_of_the_authority(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a part, and two certificates that are revoked one after the other, one of them twice
    node, first, second = fleet.issue("node", "n"), fleet.issue("worker", "a"), fleet.issue("worker", "b")
    assert read(node).now().revoked == frozenset()
    serials = [fleet.authority.revoke(each.name, SYSTEM_CLOCK.wall())[0].serial for each in (first, second, first)]
    # Then every folder has the list, also one that is made later
    later = fleet.issue("worker", "c")
    for folder in (node, later):
        assert {serial for _, serial in read(folder).now().revoked} == {*serials}
    wrong = {each.path.parent.name: each.wrong for each in shown(fleet.folder, SYSTEM_CLOCK.wall())}
    assert [name for name, why in wrong.items() if "was revoked" in why] == ["worker-a", "worker-b"]
    # And a list of another authority, or none at all, leaves the former in force
    found = read(node)
    former = found.now()
    other = Fleet(tmp_path / "other", monkeypatch)
    other.issue("node", "n")
    other.authority.revoke("node-n", SYSTEM_CLOCK.wall())
    for text, says in (((other.folder / "crl.pem").read_bytes(), "no authority of this fleet"), (b"x", "X509 CRL")):
        (node / "crl.pem").write_bytes(text)
        with pytest.raises(ConfigError, match=says):
            Certificates(node).now()
        assert found.now().revoked == former.revoked
    with pytest.raises(ConfigError, match=r"no-such.*there are node-n, worker-a, worker-b, worker-c"):
        fleet.authority.revoke("no-such", SYSTEM_CLOCK.wall())


def looking(folder: Path) -> tuple[Certificates, ManualClock]:
    """Opens certificates, with the clock by which they are looked at."""
    clock = ManualClock()
    clock.advance(SYSTEM_CLOCK.wall() - clock.wall())
    found = Certificates(folder, clock)
    found.now()
    return found, clock


def twice(found: Certificates, clock: ManualClock) -> str:
    """The trouble that the second look finds."""
    for _ in range(2):
        clock.advance(1.0)
        found.now()
    return found.trouble


def test_a_list_that_is_gone_leaves_the_former_in_force_and_is_told(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a part that trusts two authorities, each with a list
    other = Fleet(tmp_path / "other", monkeypatch, "f1")
    node = fleet.issue("node", "n")
    for each in (fleet, other):
        each.issue("worker", "w")
        each.authority.revoke("worker-w", SYSTEM_CLOCK.wall())
    lists = [(each.folder / "crl.pem").read_bytes() for each in (fleet, other)]
    authorities = [(each.folder / "ca.crt").read_bytes() for each in (fleet, other)]
    (node / "ca.crt").write_bytes(b"".join(authorities))
    (node / "crl.pem").write_bytes(b"".join(lists))
    found, clock = looking(node)
    former = found.now()
    assert len(former.revoked) == 2
    # When one of the lists is gone, or the file, Then both are in force, and it is told with what to do
    for text in (lists[1], lists[0], None):
        if text is None:
            (node / "crl.pem").unlink()
        else:
            (node / "crl.pem").write_bytes(text)
        said = twice(found, clock)
        assert said.startswith(f"{node / 'crl.pem'}: an authority in ca.crt had a list of revoked certificates here")
        assert "put the list back, one behind the other" in said and "The former certificates stay in force" in said
        assert found.now() is former
    # When they are there again, Then all is well
    (node / "crl.pem").write_bytes(b"".join(reversed(lists)))
    assert twice(found, clock) == "" and found.now().revoked == former.revoked
    # And the list of an authority goes with it
    (node / "ca.crt").write_bytes(authorities[0])
    (node / "crl.pem").write_bytes(lists[0])
    assert twice(found, clock) == "" and len(found.now().revoked) == 1
    # And a process that starts does without
    (node / "crl.pem").unlink()
    assert read(node).now().revoked == frozenset()


def test_a_certificate_that_is_gone_with_its_key_leaves_the_former_in_force_and_is_told(fleet: Fleet) -> None:
    # Given a part with a certificate
    node = fleet.issue("node", "n")
    found, clock = looking(node)
    former = found.now()
    # When both files are away, as between removing and copying, Then it is who it was
    kept = {name: (node / name).read_bytes() for name in ("tls.crt", "tls.key")}
    for name in kept:
        (node / name).unlink()
    said = twice(found, clock)
    assert said.startswith(f"{node / 'tls.crt'}: gone, and tls.key too; put both of them there together")
    assert found.now() is former and found.serving() is former
    # And when they are there again, all is well
    for name, content in kept.items():
        (node / name).write_bytes(content)
    assert twice(found, clock) == "" and found.now().caller == former.caller


def test_an_authority_alone_is_who_has_a_token(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    shutil.copy(fleet.folder / "ca.crt", tmp_path / "bare")
    found = read(tmp_path / "bare")
    assert found.now().caller is None
    with pytest.raises(ConfigError, match=r"tls\.crt: no such file; a part that listens needs a certificate"):
        found.serving()


def test_files_as_cert_manager_mounts_them_are_taken_and_changed_at_once(fleet: Fleet, tmp_path: Path) -> None:
    """Mounted files are links into a folder that is exchanged as a whole."""
    mount = tmp_path / "mount"
    mount.mkdir()
    for number, name in enumerate(("first", "second")):
        shutil.copytree(fleet.issue("worker", name), mount / f"..{number}")
    (mount / "..data").symlink_to("..0")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (mount / name).symlink_to(f"..data/{name}")
    clock = ManualClock()
    clock.advance(SYSTEM_CLOCK.wall() - clock.wall())
    found = Certificates(mount, clock)
    assert str(found.now().caller) == "worker first of fleet f1"
    (mount / "..new").symlink_to("..1")
    (mount / "..new").replace(mount / "..data")
    clock.advance(1.5)
    assert str(found.now().caller) == "worker second of fleet f1"


def empty(folder: Path) -> None:
    (folder / "tls.crt").write_text("")


def no_key(folder: Path) -> None:
    (folder / "tls.key").unlink()


def no_authority(folder: Path) -> None:
    (folder / "ca.crt").unlink()


def binary(folder: Path) -> None:
    (folder / "tls.key").write_bytes(bytes(range(256)))


def large(folder: Path) -> None:
    (folder / "ca.crt").write_bytes(b"x" * (FILE_BYTES + 1))


def many(folder: Path) -> None:
    (folder / "ca.crt").write_text((folder / "ca.crt").read_text() * 17)


def folder_for_file(folder: Path) -> None:
    (folder / "tls.crt").unlink()
    (folder / "tls.crt").mkdir()


def nothing(folder: Path) -> None:
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (empty, "tls.crt: no certificate in PEM; expected"),
        (no_key, "tls.key: no such file; expected PEM"),
        (no_authority, "ca.crt: no such file"),
        (binary, "tls.key: no private key in PEM without a passphrase"),
        (large, "ca.crt: larger than 1048576 bytes"),
        (many, "ca.crt: 17 certificates, expected at most 16"),
        (folder_for_file, "tls.crt: cannot be read: Is a directory"),
        (nothing, "no such folder of certificates; expected one with tls.crt, tls.key and ca.crt"),
    ],
)
def test_what_is_wrong_with_the_files_is_said(fleet: Fleet, spoil: Callable[[Path], None], says: str) -> None:
    folder = fleet.issue("worker")
    spoil(folder)
    with pytest.raises(ConfigError) as refused:
        read(folder)
    assert says in str(refused.value) and str(folder) in str(refused.value)


def test_a_key_of_another_certificate_and_an_authority_of_another_fleet_are_refused(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fleet.issue("worker")
    shutil.copy(fleet.issue("worker", "other") / "tls.key", folder)
    with pytest.raises(ConfigError, match=r"tls\.key: not the key of .*tls\.crt; put both of them there together"):
        read(folder)
    foreign = Fleet(tmp_path / "g", monkeypatch, "g").issue("worker")
    shutil.copy(fleet.folder / "ca.crt", foreign)
    with pytest.raises(ConfigError, match=r"not issued by an authority in .*ca\.crt: are both of one fleet"):
        read(foreign)


def test_a_certificate_of_someone_elses_making_says_what_name_it_needs(fleet: Fleet) -> None:
    folder = fleet.issue("worker")
    certificate, key = fleet.folder / "ca.crt", fleet.folder / "ca.key"  # one without a name
    shutil.copy(certificate, folder / "tls.crt")
    shutil.copy(key, folder / "tls.key")
    with pytest.raises(ConfigError, match=r"no URI of this platform .* such as tailrace://FLEET/worker/NAME"):
        read(folder)


def test_a_fleet_is_made_once_and_bad_input_leaves_nothing(tmp_path: Path) -> None:
    now = SYSTEM_CLOCK.wall()
    authority = Authority.made(tmp_path / "f", "f", now)
    with pytest.raises(Conflict, match="has an authority already"):
        Authority.made(tmp_path / "f", "f", now)
    with pytest.raises(InvalidRequest, match="'a b' is no fleet"):
        Authority.made(tmp_path / "g", "a b", now)
    assert not (tmp_path / "g").exists()
    for role, name, hosts, days, says in (
        ("boss", "x", (), 1, "'boss' is no role"),
        ("worker", "../x", (), 1, "'../x' is no name"),
        ("worker", "x", ("a b",), 1, "--host 'a b' is no host"),
        ("worker", "x", ("h:1",), 1, "without a port"),
        ("worker", "x", ("\ud800",), 1, "is no host"),
        ("worker", "x", ("h",) * 101, 1, "101 hosts"),
        ("worker", "x", (), 0, "--days is 0: expected 1 to 825"),
        ("worker", "x", (), 10_000, "expected 1 to 825"),
    ):
        with pytest.raises(InvalidRequest, match=says):
            authority.issue(role, name, hosts, now, days)
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["ca.crt", "ca.key"]
    with pytest.raises(ConfigError, match="`tailrace auth init` makes an authority"):
        Authority.of(tmp_path / "nowhere")


def test_whoever_has_hosts_may_serve_and_nobody_else(fleet: Fleet) -> None:
    for hosts, serves in (((), False), (("10.0.0.1", "Node1.Example"), True)):
        folder = fleet.issue("tailer", hosts=hosts)
        [certificate] = x509.load_pem_x509_certificates((folder / "tls.crt").read_bytes())
        uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert (x509.oid.ExtendedKeyUsageOID.SERVER_AUTH in uses) is serves
        [found] = shown(folder, SYSTEM_CLOCK.wall())
        assert found.hosts == (["localhost", "127.0.0.1", "::1", "10.0.0.1", "node1.example"] if serves else [])


def test_what_is_wrong_is_shown_beside_what_is_right(fleet: Fleet) -> None:
    fleet.issue("worker", "new")
    fleet.issue("worker", "old", ago=40)
    (fleet.issue("worker", "torn") / "tls.crt").write_text("x")
    found = shown(fleet.folder, SYSTEM_CLOCK.wall())
    assert [bool(each.wrong) for each in found] == [False, True, True]
    assert "expired at" in found[1].wrong and "no certificate in PEM" in found[2].wrong


def test_a_process_has_those_that_its_environment_names(fleet: Fleet) -> None:
    assert certificates({}) is None
    found = certificates({"TAILRACE_TLS": str(fleet.issue("worker"))})
    assert found is not None and found.now().until - found.now().since == pytest.approx(30 * DAY, abs=700)
