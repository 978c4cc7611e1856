"""A configuration directory that may not be looked into is told in a sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly.settings import AccessConfig, ConfigDirectory, unread
from tailrace.foundation.config import load
from tailrace.gateway.config import GatewayConfig
from tailrace.model.errors import ConfigError


def forbid(monkeypatch: pytest.MonkeyPatch, *calls: str) -> None:
    """Has the system refuse these calls, as it does to users that are not root."""

    def refuses(*_: object, **__: object) -> Any:
        raise PermissionError(13, "Permission denied")

    for call in calls:
        monkeypatch.setattr(os, call, refuses)


def test_a_folder_that_may_not_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a folder that this user may not list
    forbid(monkeypatch, "scandir", "listdir")
    # When it is the configuration directory, Then it is told, and what to do
    with pytest.raises(ConfigError, match=r"cannot be read: Permission denied; let this user list it"):
        ConfigDirectory(tmp_path)


@pytest.mark.parametrize("name", ["nothing", "file.yaml"])
def test_what_is_no_folder_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.yaml").write_text("")
    # When a configuration directory is not there, or a file, Then that is told
    with pytest.raises(ConfigError, match="no such configuration directory; give --config a folder"):
        ConfigDirectory(tmp_path / name)


def test_a_file_that_cannot_be_looked_at_does_not_count_as_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a folder whose names this user may list, and nothing more
    (tmp_path / "gateway.yaml").write_text("store_patience: 1\n")
    directory = ConfigDirectory(tmp_path)
    assert directory.read("gateway.yaml", GatewayConfig) == load(tmp_path / "gateway.yaml", GatewayConfig)
    forbid(monkeypatch, "stat")
    # When a file of it is read, Then that is told, instead of the defaults being taken
    with pytest.raises(ConfigError, match=r"gateway\.yaml: cannot be read: Permission denied"):
        directory.read("gateway.yaml", GatewayConfig)


def test_tailers_that_may_not_be_listed_do_not_count_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a folder of tailers that this user may not list
    (tmp_path / "tailers").mkdir()
    (tmp_path / "tailers" / "orders.yaml").write_text("name: orders\n")
    (tmp_path / "tailers" / "notes.txt").write_text("")
    directory = ConfigDirectory(tmp_path)
    assert [path.name for path in directory.tailers()] == ["orders.yaml"]
    forbid(monkeypatch, "scandir", "listdir")
    # When they are asked for, Then that is told
    with pytest.raises(ConfigError, match=r"tailers: cannot be read: Permission denied"):
        directory.tailers()


def test_a_folder_nobody_named_is_passed_over_where_it_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a folder that looks like a configuration directory, and may not be entered
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "gateway.yaml").write_text("")
    assert unread(tmp_path) == tmp_path / "configs"
    forbid(monkeypatch, "stat")
    # When somebody names none, Then nothing is said of it
    assert unread(tmp_path) is None


@pytest.mark.parametrize("name", ["tailer", "Tailers", "tailors"])
def test_tailers_in_a_folder_of_another_name_are_told(tmp_path: Path, name: str) -> None:
    # Given a folder that nobody would read, with a tailer's file
    (tmp_path / name).mkdir()
    ConfigDirectory(tmp_path)
    (tmp_path / name / "words.yaml").write_text("name: words\n")
    # When the directory is read, Then it is told, and where files of tailers lie
    with pytest.raises(ConfigError, match=rf"{name}: files of tailers lie in a folder tailers/; rename it"):
        ConfigDirectory(tmp_path)
    # And beside the right folder one may put others away
    (tmp_path / "tailers").mkdir()
    ConfigDirectory(tmp_path)


def test_folders_of_others_are_passed_over(tmp_path: Path) -> None:
    for name in ("schema", "..data", "deploy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.yaml").write_text("")
    ConfigDirectory(tmp_path)


def test_rights_that_would_do_nothing_are_told_with_their_file_and_key(tmp_path: Path) -> None:
    # Given rights of a part that acts for all functions at once
    (tmp_path / "access.yaml").write_text("rights:\n  tailer/crm-*: [submit:crm.*]\n  scheduler/s1: [read]\n")
    # When they are read, Then they are refused, and it is said what to write
    with pytest.raises(ConfigError) as refused:
        ConfigDirectory(tmp_path).read("access.yaml", AccessConfig)
    said = str(refused.value)
    assert said.startswith(f"{tmp_path / 'access.yaml'}:1: rights: 'scheduler/s1': a scheduler acts for all functions")
    assert "leave it out, and name callers of the roles client, node, operator, tailer, worker" in said
