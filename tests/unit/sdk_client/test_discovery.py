"""Where the gateway is: argument, environment, file, loopback; in this order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.sdk.discovery import find_gateway, find_gateways
from tailrace.sdk.model.errors import ConfigError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_argument_goes_before_everything(here: Path) -> None:
    assert find_gateway("10.0.0.1:1", {"TAILRACE_GATEWAY": "10.0.0.2:2"}) == "10.0.0.1:1"


def test_then_the_environment(here: Path) -> None:
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gateway: 10.0.0.3:3")
    assert find_gateway(None, {"TAILRACE_GATEWAY": "10.0.0.2:2"}) == "10.0.0.2:2"


def test_then_the_usual_file(here: Path) -> None:
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gateway: 10.0.0.3:3")
    assert find_gateway(None, {}) == "10.0.0.3:3"


@pytest.mark.parametrize("named", ["there/client.yaml", "there"])
def test_the_file_may_be_named_itself_or_by_its_folder(here: Path, named: str) -> None:
    (here / "there").mkdir()
    (here / "there/client.yaml").write_text("gateway: 10.0.0.4:4")
    assert find_gateway(None, {"TAILRACE_CONFIG": str(here / named)}) == "10.0.0.4:4"


def test_then_loopback(here: Path) -> None:
    assert find_gateway(None, {}) == "127.0.0.1:8786"


def test_a_configuration_folder_without_the_file_means_loopback(here: Path) -> None:
    assert find_gateway(None, {"TAILRACE_CONFIG": str(here)}) == "127.0.0.1:8786"


@pytest.mark.parametrize("wrong", ["localhost", "host:", ":1", "host:0", "host:99999", "host:http"])
def test_a_wrong_address_names_where_it_was_found(here: Path, wrong: str) -> None:
    with pytest.raises(ConfigError, match="the gateway argument is"):
        find_gateway(wrong, {})
    with pytest.raises(ConfigError, match="TAILRACE_GATEWAY is"):
        find_gateway(None, {"TAILRACE_GATEWAY": wrong})


def test_a_named_file_that_does_not_exist_is_an_error(here: Path) -> None:
    with pytest.raises(ConfigError, match="TAILRACE_CONFIG names nowhere"):
        find_gateway(None, {"TAILRACE_CONFIG": "nowhere"})


def test_an_unknown_key_in_the_file_is_an_error(here: Path) -> None:
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gatway: 10.0.0.3:3")
    with pytest.raises(ConfigError, match="gatway"):
        find_gateway(None, {})


def test_several_gateways_by_each_way(here: Path) -> None:
    both = ("10.0.0.1:1", "10.0.0.2:2")
    assert find_gateways(["10.0.0.1:1", "10.0.0.2:2"], {}) == both
    assert find_gateways("10.0.0.1:1, 10.0.0.2:2", {}) == both
    assert find_gateways(None, {"TAILRACE_GATEWAY": "10.0.0.1:1,10.0.0.2:2"}) == both
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gateways: ['10.0.0.1:1', '10.0.0.2:2']")
    assert find_gateways(None, {}) == both
    assert find_gateway(None, {}) == "10.0.0.1:1"


def test_one_gateway_twice_and_both_keys_are_mistakes(here: Path) -> None:
    with pytest.raises(ConfigError, match="names one gateway twice"):
        find_gateways(["10.0.0.1:1", "10.0.0.1:1"], {})
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gateway: 10.0.0.1:1\ngateways: ['10.0.0.2:2']")
    with pytest.raises(ConfigError, match="keep one of them"):
        find_gateways(None, {})
