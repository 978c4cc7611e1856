"""Reasons why a client on kafka-python cannot connect: of its own words, not of another one's that is made
meanwhile."""

import logging
import threading

import pytest
from kafka.errors import KafkaTimeoutError

from tailrace.stores.kafka.client_log import listening
from tailrace.stores.kafka.errors import explained

TIME_RAN_OUT = KafkaTimeoutError("Unable to bootstrap")


def says(heard, words):
    """Logs words in the thread of that client, as kafka-python does."""
    log = logging.getLogger("kafka.net.manager").warning
    thread = threading.Thread(target=log, args=(words,), name=f"kafka-io-{heard.name}")
    thread.start()
    thread.join()


def hint(heard):
    return explained("Kafka at b:1", heard.behind(TIME_RAN_OUT))


def test_each_of_two_that_are_made_at_once_has_its_own_reason():
    with listening() as one, listening() as other:
        says(one, "Bootstrap failed: Authentication failed: Invalid username or password")
        says(other, "Bootstrap failed: 111 ECONNREFUSED")
        assert "the broker refuses the credentials" in hint(one)
        assert "no broker answers" in hint(other)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("Sending username and password in the clear",), "no broker answers"),
        (("Exchanging credentials in the clear", "socket disconnected"), "the broker refuses the credentials"),
        (("socket disconnected",), "hangs up"),
        (("socket disconnected", "[SSL: CERTIFICATE_VERIFY_FAILED]", "socket disconnected"), "TLS failed"),
    ],
)
def test_that_credentials_were_given_is_no_cause_and_what_came_of_it_is(lines, expected):
    with listening() as heard:
        for words in lines:
            says(heard, words)
        assert expected in hint(heard)


def test_only_a_time_that_ran_out_hides_a_cause():
    with listening() as heard:
        says(heard, "Authentication failed")
        refused = ValueError("no such mechanism")
        assert heard.behind(refused) is refused
