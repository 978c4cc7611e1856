"""A stream's name as a topic, and back; the meaning of a client's errors."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tailrace.model.errors import InvalidRequest, NotConnected, UnknownFunction
from tailrace.stores.kafka.errors import explained, unavailable
from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka_names import stream_of, topic_of

names = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(names)
def test_a_name_comes_back_and_the_topic_is_one_that_kafka_takes(name: str) -> None:
    topic = topic_of("tailrace.", name)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic)
    assert stream_of("tailrace.", topic) == name


@given(names, names)
def test_two_names_are_two_topics(first: str, second: str) -> None:
    assert (topic_of("", first) == topic_of("", second)) == (first == second)


@pytest.mark.parametrize("topic", ["other", "tailrace.a_", "tailrace.a_zz", "tailrace._ff", "tailrac"])
def test_a_topic_that_is_none_of_ours_is_no_stream(topic: str) -> None:
    assert stream_of("tailrace.", topic) is None


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="249 are allowed"):
        topic_of("tailrace.", "x" * 250)


class GroupAuthorizationFailedError(Exception):
    pass


def test_an_error_says_where_what_and_what_to_do() -> None:
    words = explained("Kafka at a:1", GroupAuthorizationFailedError("group 'g'"))
    assert words.startswith("Kafka at a:1: GroupAuthorizationFailedError: group 'g'; ") and "grant the ACL" in words
    assert "username" in explained("x", Exception("KafkaError{code=_AUTHENTICATION,val=-169}"))
    assert "no broker answers" in explained("x", Exception("NodeNotReadyError: No node_id provided"))
    assert explained("Kafka at a:1", ValueError("odd")) == "Kafka at a:1: ValueError: odd"


def test_errors_of_a_client_can_be_tried_again_and_our_own_stay_what_they_are() -> None:
    assert isinstance(unavailable("x", OSError("gone")), NotConnected)
    ours = UnknownFunction("f")
    assert unavailable("x", ours) is ours


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"bootstrap_servers": "localhost"}, "expected host:port"),
        ({"security": "sasl_ssl"}, "needs username and password"),
        ({"username": "u"}, "with SASL only"),
        ({"client": "confluent", "api_version": "2.1"}, "kafka-python"),
    ],
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, str], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        KafkaOptions.model_validate(wrong)


def test_a_secret_is_in_no_text() -> None:
    options = KafkaOptions.model_validate({"security": "sasl_ssl", "username": "u", "password": "hush"})
    assert "hush" not in f"{options!r} {options} {options.where} {options.model_dump()}"
