"""Labels of workers, and whether they meet the requirements of a function."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailrace
from tailrace.model.errors import DeclarationError, InvalidRequest
from tailrace.model.labels import OPERATORS, Requirement, labels, requirement, unmet

HAS = {"gpu": "", "region": "eu", "python": "3.12.4", "cuda": "12"}


@pytest.mark.parametrize(
    ("wanted", "met"),
    [
        ("gpu", True),
        ("tpu", False),
        ("region=eu", True),
        ("region==eu", True),
        ("region != us", True),
        ("region=us", False),
        ("zone!=a", False),  # it has no zone at all
        ("python>=3.9", True),
        ("python >= 3.12", True),
        ("python<3.13", True),
        ("python>3.12.4", False),
        ("python<=3.12.4", True),
        ("cuda=12.0", True),
        ("cuda>=12.1", False),
        ("region>=1", False),  # eu is no number
        ("gpu>=1", False),
    ],
)
def test_a_requirement_is_met_or_not(wanted: str, met: bool) -> None:
    assert requirement(wanted).met_by(HAS) is met
    assert (unmet([wanted], HAS) == "") is met


@pytest.mark.parametrize("text", ["", "=", "a b", "gpu=", ">=3", "a=>3", "ümlaut", "a" * 65, "python>=new", "a\n=b"])
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is not a requirement|compares with"):
        requirement(text)


@pytest.mark.parametrize(
    ("texts", "why"), [(["g p u"], "not a label"), (["a", "a=1"], "twice"), ([f"n{n}" for n in range(33)], "33 labels")]
)
def test_what_are_no_labels_is_refused(texts: list[str], why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        labels(texts)


VERSIONS = st.lists(st.integers(0, 99), min_size=1, max_size=4).map(lambda each: ".".join(map(str, each)))


@given(VERSIONS, VERSIONS)
def test_versions_are_ordered(one: str, other: str) -> None:
    met = {name for name in OPERATORS if Requirement("v", name, other).met_by({"v": one})}
    assert met in ({"=", ">=", "<="}, {"!=", ">", ">="}, {"!=", "<", "<="})
    assert str(requirement(f"v>={one}")) == f"v>={one}"


def test_a_function_declares_what_it_requires_once_and_a_typo_is_told() -> None:
    @tailrace.function(requires=["gpu", "python >= 3.12", "gpu"])
    def train() -> None: ...

    assert train.spec.requires == ("gpu", "python>=3.12")
    with pytest.raises(DeclarationError, match="expected a list of requirements"):
        tailrace.function(name="f", requires="gpu")(lambda: None)
    with pytest.raises(DeclarationError, match="function 'f': 'g p u' is not a requirement"):
        tailrace.function(name="f", requires=["g p u"])(lambda: None)
