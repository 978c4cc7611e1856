"""Callers that have gone are no line of the log; everything else that a library says is logged as it is."""

import logging

import pytest

from tailrace.foundation.listener_logs import LONGEST, set_filters, words


class ExecuteBatchError(Exception):
    """An error with the name of gRPC's own."""


def test_an_answer_whose_caller_has_gone_is_nothing_to_log(caplog: pytest.LogCaptureFixture) -> None:
    # Given what gRPC says when it cannot send an answer, for its call is over
    set_filters()
    log = logging.getLogger("grpc._cython.cygrpc")
    try:
        raise ExecuteBatchError
    except ExecuteBatchError:
        log.exception("Failed sending error status from server")
        log.exception("ExecuteBatchError raised in core by servicer method [/x]")
    # Then the log has nothing of it
    assert not caplog.records


def test_other_records_pass_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    set_filters()
    logging.getLogger("aiohttp.server").error("something else")
    [record] = caplog.records
    assert (record.getMessage(), record.levelno) == ("something else", logging.ERROR)


def test_words_are_on_one_line_and_bounded() -> None:
    assert words(ValueError("400, message:\n  Bad\n\n   x")) == "400, message: Bad x"
    assert words(ValueError("y" * 1000)) == "y" * LONGEST + "…"
