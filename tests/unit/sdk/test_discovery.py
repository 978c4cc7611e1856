"""Discovery of the gateway: by argument, environment, file, or a part that runs on this machine; in this order."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.foundation import run_dir
from tailrace.foundation.notices import Posted
from tailrace.foundation.run_dir import VARIABLE, RunDir
from tailrace.model.errors import ConfigError
from tailrace.sdk import discovery
from tailrace.sdk.discovery import Found, find_gateway, find_gateways, find_scheduler, look_again

Post = Callable[..., Posted]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "run"))
    return tmp_path


@pytest.fixture
def post(here: Path) -> Iterator[Post]:
    """Posts the address of a gateway, or of another part."""
    place, posted = RunDir(here / "run"), []
    place.open()

    def post(address: str, home: str = "data in /here", part: str = "gateway") -> Posted:
        posted.append(Posted(place, part))
        posted[-1].post(address, home)
        return posted[-1]

    yield post
    for each in posted:
        each.withdraw()
    place.close()


def test_the_argument_goes_before_everything(here: Path) -> None:
    assert find_gateway("10.0.0.1:1", {"TAILRACE_GATEWAY": "10.0.0.2:2"}) == "10.0.0.1:1"


def test_then_the_environment(here: Path) -> None:
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gateway: 10.0.0.3:3")
    assert find_gateway(None, {"TAILRACE_GATEWAY": "10.0.0.2:2"}) == "10.0.0.2:2"


def test_then_the_usual_file(here: Path) -> None:
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gateway: 10.0.0.3:3")
    assert find_gateway() == "10.0.0.3:3"


@pytest.mark.parametrize("named", ["there/client.yaml", "there"])
def test_the_file_may_be_named_itself_or_by_its_folder(here: Path, named: str) -> None:
    (here / "there").mkdir()
    (here / "there/client.yaml").write_text("gateway: 10.0.0.4:4")
    assert find_gateway(None, {"TAILRACE_CONFIG": str(here / named)}) == "10.0.0.4:4"


def test_then_loopback(here: Path) -> None:
    assert find_gateway() == "127.0.0.1:8786"


def test_a_configuration_folder_without_the_file_means_loopback(here: Path) -> None:
    assert find_gateway(None, {"TAILRACE_CONFIG": str(here), VARIABLE: str(here / "run")}) == "127.0.0.1:8786"


@pytest.mark.parametrize("wrong", ["localhost", "host:", ":1", "host:0", "host:99999", "host:http"])
def test_a_wrong_address_names_where_it_was_found(here: Path, wrong: str) -> None:
    with pytest.raises(ConfigError, match="the gateway argument is"):
        find_gateway(wrong, {})
    with pytest.raises(ConfigError, match="TAILRACE_GATEWAY is"):
        find_gateway(None, {"TAILRACE_GATEWAY": wrong})
    with pytest.raises(ConfigError, match="--scheduler is"):
        find_scheduler(wrong, {})
    with pytest.raises(ConfigError, match="TAILRACE_SCHEDULER is"):
        find_scheduler(None, {"TAILRACE_SCHEDULER": wrong})


@pytest.mark.parametrize("given", ["node1:8788", "[::1]:8788", "direct:127.0.0.1:8791", "tls:localhost:8788"])
def test_each_form_of_a_schedulers_address_is_taken(given: str) -> None:
    assert find_scheduler(given, {}).addresses == (given,)


def test_a_named_file_that_does_not_exist_is_an_error(here: Path) -> None:
    with pytest.raises(ConfigError, match="TAILRACE_CONFIG names nowhere"):
        find_gateway(None, {"TAILRACE_CONFIG": "nowhere"})


def test_an_unknown_key_in_the_file_is_an_error(here: Path) -> None:
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gatway: 10.0.0.3:3")
    with pytest.raises(ConfigError, match="gatway"):
        find_gateway()


def test_several_gateways_by_each_way(here: Path) -> None:
    both = ("10.0.0.1:1", "10.0.0.2:2")
    assert find_gateways(["10.0.0.1:1", "10.0.0.2:2"], {}).addresses == both
    assert find_gateways("10.0.0.1:1, 10.0.0.2:2", {}).addresses == both
    assert find_gateways(None, {"TAILRACE_GATEWAY": "10.0.0.1:1,10.0.0.2:2"}).addresses == both
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gateways: ['10.0.0.1:1', '10.0.0.2:2']")
    assert find_gateways().addresses == both
    assert find_gateway() == "10.0.0.1:1"


def test_one_gateway_twice_and_both_keys_are_mistakes(here: Path) -> None:
    with pytest.raises(ConfigError, match="names one gateway twice"):
        find_gateways(["10.0.0.1:1", "10.0.0.1:1"], {})
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gateway: 10.0.0.1:1\ngateways: ['10.0.0.2:2']")
    with pytest.raises(ConfigError, match="keep one of them"):
        find_gateways()


# ---- what runs on this machine: `None` is the environment of the test, in which only the run directory is chosen


def test_the_one_that_runs_is_found_wherever_it_listens(post: Post) -> None:
    assert find_gateways().addresses == ("127.0.0.1:8786",)
    post("127.0.0.1:9000")
    post("127.0.0.1:9002", "gateway at 127.0.0.1:9000", "scheduler")
    assert find_gateway() == "127.0.0.1:9000"
    assert find_scheduler().addresses == ("127.0.0.1:9002",)


def test_what_is_named_goes_before_what_runs(post: Post, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    post("127.0.0.1:9000")
    post("127.0.0.1:9002", part="scheduler")
    assert find_gateway("10.0.0.1:1") == find_scheduler("10.0.0.1:1").addresses[0] == "10.0.0.1:1"
    monkeypatch.setenv("TAILRACE_GATEWAY", "10.0.0.2:2")
    monkeypatch.setenv("TAILRACE_SCHEDULER", "direct:10.0.0.2:3")
    assert (find_gateway(), find_scheduler().addresses) == ("10.0.0.2:2", ("direct:10.0.0.2:3",))
    monkeypatch.delenv("TAILRACE_GATEWAY")
    (here / "configs").mkdir()
    (here / "configs/client.yaml").write_text("gateway: 10.0.0.3:3")
    assert find_gateway() == "10.0.0.3:3"
    (here / "configs/client.yaml").write_text("{}")
    assert find_gateway() == "127.0.0.1:9000", "a file that names none"


@pytest.mark.parametrize("default", ["127.0.0.1:8786", "localhost:8786", "0.0.0.0:8786"])
def test_of_several_the_one_at_the_default_address_is_meant(post: Post, default: str) -> None:
    post("127.0.0.1:9000", "data in /one")
    post(default, "data in /other")
    found = find_gateways()
    assert (found.addresses, found.home) == (("127.0.0.1:8786",), "data in /other")


def test_where_this_user_listens_at_the_default_address_without_a_notice_that_is_meant(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default address may be a tunnel to another machine; unless the run directory was chosen."""
    chosen = {VARIABLE: str(here / f"tailrace-{os.geteuid()}")}
    monkeypatch.setattr(run_dir.tempfile, "gettempdir", lambda: str(here))
    usual = RunDir(Path(chosen[VARIABLE]))
    usual.open()
    posted = Posted(usual, "gateway")
    posted.post("127.0.0.1:9000", "data in /here")
    with socket.create_server(("127.0.0.1", 0)) as tunnel:
        address = f"127.0.0.1:{tunnel.getsockname()[1]}"
        monkeypatch.setitem(discovery._DEFAULTS, "gateway", address)
        assert find_gateway(None, {}) == address
        assert find_gateway(None, chosen) == "127.0.0.1:9000"
    assert find_gateway(None, {}) == "127.0.0.1:9000"
    posted.withdraw()
    usual.close()


def test_of_several_elsewhere_the_user_chooses(post: Post) -> None:
    for number in range(12):
        post(f"127.0.0.1:{9000 + number}", f"data in /shop/{number}")
    with pytest.raises(ConfigError) as caught:
        find_gateway()
    said = str(caught.value)
    assert said.startswith("12 gateways of yours run on this machine, and none at the default address 127.0.0.1:8786:")
    assert f"  127.0.0.1:9000  process {os.getpid()}, data in /shop/0\n" in said and "… and 2 more" in said
    assert said.endswith("say which one: --gateway, the gateway argument or TAILRACE_GATEWAY")
    for number in range(2):
        post(f"127.0.0.1:{9100 + number}", part="scheduler")
    with pytest.raises(ConfigError, match=r"2 schedulers of yours(.|\n)*--scheduler or TAILRACE_SCHEDULER"):
        find_scheduler()


def test_whoever_gets_no_answer_is_told_what_was_looked_at(
    post: Post, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = here / "run"
    assert find_gateways().reason == (
        f" It was asked because it is the default, and no notice in {run} tells of a gateway that runs"
    )
    post("127.0.0.1:9000")
    assert find_gateways().reason == f" It was asked because it is the one gateway that a notice in {run} tells of"
    monkeypatch.setenv("TAILRACE_GATEWAY", "10.0.0.2:2")
    assert find_gateways().reason == " It was asked because TAILRACE_GATEWAY names it"
    assert find_gateways("10.0.0.2:2").reason == ""


def test_another_look_finds_the_same_platform_elsewhere_and_no_other_one(post: Post) -> None:
    # Given one that was found
    first = post("127.0.0.1:9000", "data in /one")
    found = find_gateways()
    assert look_again("gateway", found) is None, "it is there still"
    # When it ends while another platform runs, then that one is not taken for it
    first.withdraw()
    other = post("127.0.0.1:9001", "data in /other")
    assert look_again("gateway", found) is None
    # When it comes back, then it is found beside the other one
    post("127.0.0.1:9002", "data in /one")
    again = look_again("gateway", found)
    assert again is not None and (again.addresses, again.home) == (("127.0.0.1:9002",), "data in /one")
    # And one of which nothing was known is whichever runs, if only one does
    unknown = Found(("127.0.0.1:8786",), looked=True)
    assert look_again("gateway", unknown) is None
    other.withdraw()
    assert look_again("gateway", unknown) == again
