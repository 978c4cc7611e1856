"""Commands about jobs, without a gateway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.gateway.commands.jobs import retry
from tailrace.model.errors import Unavailable
from tailrace.model.job import TreeState, TreeStatus
from tailrace.sdk import found_gateway


def test_a_try_whose_answer_was_lost_says_how_to_ask_for_the_same_one_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str]] = []

    class GatewayWithoutAnswer:
        """A gateway that makes the job, and does not answer the first time."""

        def retry_job(self, tree: str, id: str, who: str, why: str) -> TreeStatus:
            asked.append((tree, id))
            if len(asked) == 1:
                raise Unavailable("the answer is lost")
            return TreeStatus(id, "mail", "", TreeState.RUNNING, "continue", "ann", 0.0)

    def ask(gateway: str | None, call: Callable[[Any], Any]) -> Any:
        return call(GatewayWithoutAnswer())

    monkeypatch.setattr(found_gateway, "ask", ask)
    # Given a command that heard nothing
    with pytest.raises(Unavailable):
        retry("job-1")
    told = capsys.readouterr().err.split("`")[1].split()
    # When it is said again as it was told
    assert told[:4] == ["tailrace", "job", "retry", "job-1"]
    assert told[4] == "--as"
    retry("job-1", told[5])
    # Then it is the same job that is asked for
    assert capsys.readouterr().out.split() == [told[5]]
    assert asked == [("job-1", told[5])] * 2
