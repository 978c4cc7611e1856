"""Gates: of all that match an item, the one that decides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.gate import Gate
from tailrace.model.workload import Kind
from tailrace.scheduler.rules.gate import Gates
from tailrace.tailers.rules.credit import Credit


def test_the_more_specific_gate_decides() -> None:
    gates = Gates([Gate("f", "", "pause"), Gate("f", "news", "drop"), Gate("g", "x", "resume")])
    found = [gates.of(kind) for kind in (Kind("f"), Kind("f", 0, "news"), Kind("g", 0, "x"), Kind("h"))]
    assert [gate and gate.action for gate in found] == ["pause", "drop", None, None]
    assert {(closed.function, closed.collection, closed.drop) for closed in gates.closed} == {
        ("f", "", False),
        ("f", "news", True),
    }


def test_a_closed_gate_says_who_and_why() -> None:
    (closed,) = Gates([Gate("send", "news", "pause", "ann", "outage")]).closed
    assert closed.reason == "collection 'news' of send is paused by ann: outage"


def test_between_gates_of_which_neither_is_more_specific_pause_goes_before_drop() -> None:
    # Given a dropped function, a paused tenant, a paused downstream that another function calls, and a dropped source
    stripe = {"pay": ("stripe",), "refund": ("stripe", "bank")}
    gates = Gates(
        [
            Gate("f", "", "drop"),
            Gate("", "", "pause", tenant="a"),
            Gate("", "", "pause", downstream="stripe"),
            Gate("", "", "drop", downstream="stripe", tenant="b"),
            Gate("", "", "drop", source="orders"),
        ],
        stripe,
        lambda function: stripe.get(function, ()),
    )

    def decides(kind: Kind, source: str = "") -> tuple[str, str] | None:
        gate = gates.of(kind, source)
        return None if gate is None else (gate.what, gate.action)

    # Then each kind meets the one that is nearest, and of equals the one that keeps it
    assert decides(Kind("f")) == ("f", "drop")
    assert decides(Kind("f", tenant="a")) == ("tenant a", "pause")
    assert decides(Kind("pay")) == ("downstream stripe", "pause")
    assert decides(Kind("pay", tenant="b")) == ("tenant b × downstream stripe", "drop")
    assert decides(Kind("other")) is None
    assert decides(Kind("other"), "orders") == ("source orders", "drop")
    assert decides(Kind("other", tenant="a"), "orders") == ("tenant a", "pause")
    # And what is closed to every session names each function that calls the downstream, and no source
    assert {(each.function, each.tenant, each.drop) for each in gates.closed} == {
        ("f", "", True),
        ("", "a", False),
        ("pay", "", False),
        ("refund", "", False),
        ("pay", "b", True),
        ("refund", "b", True),
    }


@given(
    st.lists(
        st.builds(
            Gate,
            st.sampled_from(["", "f", "g"]),
            st.sampled_from(["", "c"]),
            st.sampled_from(["pause", "drop"]),
            tenant=st.sampled_from(["", "a"]),
            downstream=st.sampled_from(["", "d"]),
            source=st.sampled_from(["", "s"]),
        ).filter(lambda gate: not gate.fault()),
        max_size=8,
        unique_by=lambda gate: gate.key,
    ),
    st.builds(Kind, st.sampled_from(["f", "g"]), st.just(0), st.sampled_from(["", "c"]), st.sampled_from(["", "a"])),
    st.sampled_from(["", "s"]),
)
def test_the_gate_that_decides_is_the_one_that_a_slow_reading_finds(gates: list[Gate], kind: Kind, source: str) -> None:
    calls = {"f": ("d",)}
    facts = {kind.function, f"c:{kind.collection}", f"t:{kind.tenant}", f"s:{source}"}
    facts |= {f"d:{name}" for name in calls.get(kind.function, ())}

    def names(gate: Gate) -> set[str]:
        named = [
            gate.function,
            *(f"{letter}:{name}" if name else "" for letter, name in zip("ctds", gate.key[1:], strict=True)),
        ]
        return set(named) - {""}

    standing = [gate for gate in gates if names(gate) <= facts]
    nearest = [gate for gate in standing if not any(names(gate) < names(other) for other in standing)]
    made = Gates(gates, calls, lambda function: calls.get(function, ()))
    found = made.of(kind, source)
    assert (found is None) == (not nearest)
    if source not in made.sources:  # its tailer pushes nothing that would come back held
        credit = Credit()
        credit.close(made.closed)
        paused = found is not None and found.action == "pause"
        assert credit.is_closed(kind) or not paused
        assert paused or found is not None or not credit.is_closed(kind)
    if found is not None:
        assert found in nearest
        assert found.action == ("pause" if any(gate.action == "pause" for gate in nearest) else "drop")
