"""The core under both clients: its requests, its repeats, and its reading of the answers. No network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.model.errors import (
    InvalidRequest,
    Overloaded,
    PartlySubmitted,
    StoreFull,
    Unavailable,
    UnknownFunction,
    WorkloadFailed,
)
from tailrace.model.status import WorkloadStatus
from tailrace.model.workload import Kind
from tailrace.sdk import submitting, workload_calls
from tailrace.sdk.call import Call
from tailrace.sdk.chunks import CHUNK_ITEMS
from tailrace.sdk.conversation import Ask, Conversation, Look, Pause, Steps
from tailrace.sdk.discovery import Found
from tailrace.wire.gateway_messages import Accepted, status_to_wire
from tailrace.wire.v1 import gateway_pb2 as pb

ADDRESS = "127.0.0.1:8786"


class World:
    """A clock, and a gateway that answers by a script: each entry a reply, an error, or a function of the request."""

    def __init__(self, *script: Any, again: Any = None) -> None:
        self.now = 0.0
        self.asked: list[Ask] = []
        self.looks: list[Found] = []
        self.moved: Found | None = None
        self._script = list(script)
        self._again = again
        self.talk = Conversation(Found((ADDRESS,)), 10.0, lambda: self.now)

    def run(self, steps: Steps[Any]) -> Any:
        send: Callable[[], Any] = lambda: next(steps)  # noqa: E731
        while True:
            try:
                step = send()
            except StopIteration as end:
                return end.value
            if isinstance(step, Look):
                self.looks.append(step.before)
                send = lambda found=self.moved: steps.send(found)  # type: ignore[misc]  # noqa: E731
                continue
            if isinstance(step, Pause):
                self.now += step.seconds
                send = lambda: next(steps)  # noqa: E731
                continue
            self.asked.append(step)
            self.now += 0.001
            answer = self._script.pop(0) if self._script else self._again
            if callable(answer):
                answer = answer(step.request)
            if isinstance(answer, Exception):
                send = lambda problem=answer: steps.throw(problem)  # type: ignore[misc]  # noqa: E731
            else:
                send = lambda reply=answer: steps.send(reply)  # type: ignore[misc]  # noqa: E731


def size(request: pb.SubmitRequest) -> int:
    return len(request.workloads) + len(request.alike.payloads)


def ids_for(request: pb.SubmitRequest) -> pb.SubmitReply:
    return pb.SubmitReply(ids=[f"id-{index}" for index in range(size(request))])


def answer(state: str, result: bytes | None = None, **facts: Any) -> pb.ResultReply:
    status = WorkloadStatus("id", state, Kind("index"), **facts)
    return pb.ResultReply(status=status_to_wire("id", status), has_result=result is not None, result=result or b"")


def test_a_submission_that_was_not_answered_is_sent_again_under_the_same_token() -> None:
    # Given a gateway that does not answer twice
    world = World(Unavailable("gone; is it running?"), Unavailable("gone"), again=ids_for)
    # When a call is submitted
    assert world.run(submitting.submit(world.talk, Call("index"))) == Accepted("id-0", False)
    # Then the same request was sent three times, with one token
    tokens = {ask.request.workloads[0].submission_id for ask in world.asked}
    assert (len(world.asked), len(tokens)) == (3, 1)
    assert len(tokens.pop()) == 32


def test_a_dedupe_key_is_token_enough() -> None:
    world = World(again=ids_for)
    world.run(submitting.submit(world.talk, Call("index", dedupe_key="mine")))
    [workload] = world.asked[0].request.workloads
    assert (workload.dedupe_key, workload.submission_id) == ("mine", "")


def test_patience_ends_with_a_message_that_says_what_to_do() -> None:
    world = World(again=Unavailable(f"{ADDRESS} does not answer (refused); is it running?"))
    with pytest.raises(Unavailable) as caught:
        world.run(submitting.submit(world.talk, Call("index")))
    for word in (ADDRESS, "10 seconds", "refused", "tailrace up", "TAILRACE_GATEWAY"):
        assert word in str(caught.value)
    assert str(caught.value).count("running?") == 1
    assert 8.0 <= world.now <= 10.001, "the last call may begin in the last moment"
    assert all(0 < ask.timeout <= 10.0 for ask in world.asked)


def test_an_overloaded_gateway_is_asked_again_when_it_said() -> None:
    world = World(Overloaded("busy", 2.0), again=ids_for)
    world.run(submitting.submit(world.talk, Call("index")))
    assert 2.0 <= world.now <= 3.1


def test_overload_beyond_patience_is_raised_as_it_is() -> None:
    world = World(again=Overloaded("busy", 3.0))
    with pytest.raises(Overloaded, match="busy"):
        world.run(submitting.submit(world.talk, Call("index")))


@pytest.mark.parametrize("error", [UnknownFunction("no such"), StoreFull("the disk is full")])
def test_what_trying_again_cannot_help_is_raised_at_once(error: Exception) -> None:
    world = World(again=error)
    with pytest.raises(type(error)):
        world.run(submitting.submit(world.talk, Call("index")))
    assert len(world.asked) == 1


@pytest.mark.parametrize("error", [StoreFull("the disk is full"), Overloaded("busy", 1.0)])
def test_a_refusal_after_a_try_that_was_not_answered_does_not_say_that_nothing_was_stored(error: Unavailable) -> None:
    # Given a try that may have been heard, and then refusals
    world = World(Unavailable("its connection ended"), again=error)
    # When patience ends, then what is raised is that it is not known
    with pytest.raises(Unavailable, match=str(error)) as caught:
        world.run(submitting.submit(world.talk, Call("index")))
    assert type(caught.value) is Unavailable and world.now >= 8.0
    # And where they end before, the call is answered under the same token
    world = World(Unavailable("its connection ended"), error, again=ids_for)
    world.run(submitting.submit(world.talk, Call("index")))
    assert len({ask.request.workloads[0].submission_id for ask in world.asked}) == 1 and len(world.asked) == 3


def test_many_go_in_chunks_of_a_thousand_each_with_tokens_of_its_own() -> None:
    world = World(again=ids_for)
    done = world.run(
        submitting.submit_many(
            world.talk, (Call("index") for _ in range(2 * CHUNK_ITEMS + 1)), True, lambda _, each: each.id
        )
    )
    assert len(done) == 2 * CHUNK_ITEMS + 1
    assert [size(ask.request) for ask in world.asked] == [CHUNK_ITEMS, CHUNK_ITEMS, 1]
    tokens = [ask.request.alike.token for ask in world.asked[:2]] + [world.asked[2].request.workloads[0].submission_id]
    assert len(set(tokens)) == 3 and [len(token) for token in tokens] == [26, 26, 32]


def test_large_payloads_make_smaller_chunks() -> None:
    world = World(again=ids_for)
    calls = [Call("index", data="x" * 600_000) for _ in range(3)]
    world.run(submitting.submit_many(world.talk, calls, True, lambda _, each: each.id))
    assert [size(ask.request) for ask in world.asked] == [1, 1, 1]


def test_nothing_to_submit_asks_nothing() -> None:
    world = World()
    assert world.run(submitting.submit_many(world.talk, [], True, lambda _, each: each)) == []
    assert world.asked == []


def test_a_first_chunk_that_is_refused_is_raised_as_it_is() -> None:
    world = World(UnknownFunction("no such"))
    with pytest.raises(UnknownFunction):
        world.run(submitting.submit_many(world.talk, [Call("index")], True, lambda _, each: each))


def test_a_later_chunk_that_is_refused_says_what_was_accepted() -> None:
    world = World(ids_for, InvalidRequest("workload 3 of 5: bad"))
    calls = [Call("index") for _ in range(CHUNK_ITEMS + 5)]
    with pytest.raises(PartlySubmitted, match=r"the first 1000 workloads were accepted.*workload 3 of 5") as caught:
        world.run(submitting.submit_many(world.talk, calls, True, lambda _, each: each.id))
    assert len(caught.value.handles) == CHUNK_ITEMS
    assert isinstance(caught.value.__cause__, InvalidRequest)


def test_without_tokens_nothing_is_sent_twice() -> None:
    world = World(again=Unavailable("gone"))
    with pytest.raises(Unavailable):
        world.run(submitting.submit_many(world.talk, [Call("index")], False, lambda _, each: each))
    assert len(world.asked) == 1
    assert world.asked[0].request.workloads[0].submission_id == ""


def test_something_else_than_a_call_is_refused_by_name() -> None:
    world = World()
    with pytest.raises(InvalidRequest, match=r"tailrace\.Call.*dict"):
        world.run(submitting.submit_many(world.talk, [{"function": "index"}], True, lambda _, each: each))  # type: ignore[list-item]


def test_a_result_is_waited_for_call_after_call() -> None:
    world = World(answer("processing"), answer("processing"), answer("success", b'{"a": [1, 2.5, null]}'))
    assert world.run(workload_calls.result(world.talk, "id", None)) == {"a": [1, 2.5, None]}
    assert all(ask.request.wait <= 30 < ask.timeout for ask in world.asked)


def test_a_success_without_a_value_is_none() -> None:
    world = World(answer("success"))
    assert world.run(workload_calls.result(world.talk, "id", 1.0)) is None


@pytest.mark.parametrize("state", ["fatal_failure", "cancelled", "dropped", "expired"])
def test_a_workload_that_did_not_succeed_raises_with_its_reason(state: str) -> None:
    world = World(answer(state, reason="no such address", attempts=3))
    with pytest.raises(WorkloadFailed, match=f"index id ended as {state} after 3 failed.*no such address") as caught:
        world.run(workload_calls.result(world.talk, "id", 1.0))
    assert (caught.value.outcome, caught.value.reason, caught.value.attempts) == (state, "no such address", 3)


def test_time_that_runs_out_says_where_the_workload_is() -> None:
    world = World(again=answer("retriable_failure", attempts=2, reason="refused"))

    def wait(request: pb.ResultRequest) -> pb.ResultReply:
        world.now += request.wait
        return answer("retriable_failure", attempts=2, reason="refused")

    world = World(again=wait)
    with pytest.raises(
        TimeoutError, match=r"index id has not ended within 45 seconds: it is retriable_failure after 2"
    ):
        world.run(workload_calls.result(world.talk, "id", 45.0))
    assert [ask.request.wait for ask in world.asked][:1] == [30.0]
    assert 45.0 <= world.now < 46.0


def test_a_timeout_of_zero_asks_once() -> None:
    world = World(again=answer("processing"))
    with pytest.raises(TimeoutError):
        world.run(workload_calls.result(world.talk, "id", 0.0))
    assert len(world.asked) == 1


def test_an_unknown_id_is_the_user_s_error() -> None:
    world = World(again=pb.ResultReply(status=pb.WorkloadStatus(id="nope")))
    with pytest.raises(InvalidRequest, match="nope"):
        world.run(workload_calls.result(world.talk, "nope", 1.0))


def test_statuses_are_asked_for_in_batches() -> None:
    def statuses(request: pb.StatusRequest) -> pb.StatusReply:
        return pb.StatusReply(statuses=[pb.WorkloadStatus(id=id) for id in request.ids])

    world = World(again=statuses)
    assert world.run(workload_calls.status_many(world.talk, [str(number) for number in range(1500)])) == [None] * 1500
    assert [len(ask.request.ids) for ask in world.asked] == [1000, 500]


def several(*script: Any, again: Any = None) -> World:
    """A client of three gateways, that begins with the first one."""
    world = World(*script, again=again)
    world.talk = Conversation(Found(("a:1", "b:2", "c:3")), 10.0, lambda: world.now)
    world.talk._place = 0
    return world


def test_a_gateway_that_does_not_answer_is_passed_for_the_next_one_at_once() -> None:
    # Given three gateways of which two are away
    world = several(Unavailable("gone"), Unavailable("gone"), again=ids_for)
    # When a call is submitted
    world.run(submitting.submit(world.talk, Call("index")))
    # Then each was asked once, under one token, without a pause, and not all of the time was left to the first
    assert [ask.place for ask in world.asked] == [0, 1, 2]
    assert len({ask.request.workloads[0].submission_id for ask in world.asked}) == 1
    assert world.now < 0.01
    assert world.asked[0].timeout == pytest.approx(5.0, rel=0.01)
    # And the next call begins with the one that answered
    world.run(submitting.submit(world.talk, Call("index")))
    assert world.asked[-1].place == 2


def test_a_round_in_which_nobody_answers_is_followed_by_a_pause_and_at_last_by_the_error() -> None:
    world = several(again=Unavailable("gone"))
    with pytest.raises(Unavailable, match="the gateways at a:1, b:2, c:3 within 10 seconds"):
        world.run(submitting.submit(world.talk, Call("index")))
    assert len(world.asked) % 3 == 0 or world.now >= 10.0, "whole rounds, but for one that patience ended"
    assert world.now <= 10.001


def test_an_overloaded_gateway_is_passed_and_the_shortest_wait_of_a_round_is_kept() -> None:
    world = several(Overloaded("full", 3.0), Overloaded("full", 1.0), Overloaded("full", 2.0), again=ids_for)
    world.run(submitting.submit(world.talk, Call("index")))
    assert [ask.place for ask in world.asked] == [0, 1, 2, 0]
    assert 1.0 <= world.now <= 1.6


def test_the_id_of_a_spooled_workload_is_asked_of_every_gateway() -> None:
    # Given a workload that the second gateway spooled
    known = pb.StatusReply(statuses=[status_to_wire("1", WorkloadStatus("1", "new", Kind("index")))])
    strange = pb.StatusReply(statuses=[status_to_wire("spool-1", None)])
    world = several(strange, known, Unavailable("gone"))
    # When the first one does not know it, then the others are asked, whoever answers
    assert world.run(workload_calls.status(world.talk, "spool-1")).state == "new"
    assert [ask.place for ask in world.asked] == [0, 1, 2]
    # And its result is waited for where it is known
    world = several(
        pb.ResultReply(status=status_to_wire("spool-1", None)), answer("success", b"3"), again=Unavailable("gone")
    )
    assert world.run(workload_calls.result(world.talk, "spool-1", 5.0)) == 3
    # And it is cancelled there
    world = several(pb.CancelReply(outcomes=["unknown"]), pb.CancelReply(outcomes=["cancelled"]), Unavailable("gone"))
    assert world.run(workload_calls.cancel_many(world.talk, ["spool-1"])) == ["cancelled"]
    # And an id of the queue is asked of one alone
    world = several(pb.StatusReply(statuses=[status_to_wire("1", None)]))
    assert world.run(workload_calls.status_many(world.talk, ["1"])) == [None]


# ---- a gateway that was looked for


def looked_for(world: World, home: str = "data in /here") -> Found:
    """The address that the client found, with which it talks from now on."""
    found = Found((ADDRESS,), "it is the default", True, home)
    world.talk = Conversation(found, 10.0, lambda: world.now)
    return found


def test_one_that_was_looked_for_is_looked_for_again_while_it_does_not_answer() -> None:
    # Given a client that found its gateway, which was there
    world = World(ids_for, Unavailable("away"), Unavailable("away"), again=ids_for)
    found = looked_for(world)
    world.run(submitting.submit(world.talk, Call("index")))
    assert world.looks == []
    # When that is away and then elsewhere
    world.moved = Found(("127.0.0.1:9000",), "it is the one", True, "data in /here")
    world.run(submitting.submit(world.talk, Call("index")))
    # Then the client goes along, and looks no more often than makes sense
    assert world.looks == [found] and world.talk.found == world.moved


def test_looks_are_spread_over_its_patience_and_the_error_says_why_there() -> None:
    world = World(again=Unavailable(f"{ADDRESS} does not answer (refused); is it running?"))
    found = looked_for(world)
    with pytest.raises(Unavailable, match=r"TAILRACE_GATEWAY\. It was asked because it is the default$"):
        world.run(submitting.submit(world.talk, Call("index")))
    assert 5 < len(world.looks) <= 50 and {*world.looks} == {found}


def test_one_that_was_given_or_cannot_be_told_from_another_platforms_is_never_left() -> None:
    # Given a client that was told its gateway, and one that reached somebody of whom nothing was told
    for given in (True, False):
        world = World(ids_for, again=Unavailable("away"))
        if not given:
            looked_for(world, home="")
        world.run(submitting.submit(world.talk, Call("index")))
        # When that does not answer, then nobody else is looked for
        with pytest.raises(Unavailable):
            world.run(submitting.submit(world.talk, Call("index")))
        assert world.looks == []


def test_one_that_never_answered_may_be_any_that_runs() -> None:
    world = World(Unavailable("away"), again=ids_for)
    looked_for(world, home="")
    world.moved = Found(("127.0.0.1:9000",), "it is the one", True, "data in /here")
    world.run(submitting.submit(world.talk, Call("index")))
    assert world.talk.addresses == ("127.0.0.1:9000",)


def test_a_call_that_is_not_repeated_finds_the_gateway_for_the_next_one() -> None:
    world = World(Unavailable("away"), again=ids_for)
    looked_for(world)
    world.moved = Found(("127.0.0.1:9000",), "it is the one", True, "data in /here")
    with pytest.raises(Unavailable):
        world.run(submitting.submit_many(world.talk, [Call("index")], False, lambda call, answer: None))
    assert world.talk.found == world.moved
