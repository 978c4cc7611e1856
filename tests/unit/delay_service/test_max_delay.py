"""A bound on delays that is below the waits of the usual retry policy is told at the start."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.service import DelayService


@pytest.mark.parametrize(("max_delay", "told"), [("1h", True), ("6h", False), ("30d", False)])
def test_a_bound_that_ends_retries_early_is_told(max_delay: str, told: bool, caplog: pytest.LogCaptureFixture) -> None:
    # When a delay service is made with that bound
    DelayService(cast(Any, None), DelayConfig.model_validate({"max_delay": max_delay}))
    # Then it says what that costs, if it costs anything
    assert ("max_delay in delay.yaml is 1h, and the usual retry policy waits up to 6h" in caplog.text) is told
