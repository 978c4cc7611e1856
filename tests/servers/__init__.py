"""The real servers that tests run against, one file each. A fixture takes, in this order:

1. the address that the environment names (`TAILRACE_TEST_KAFKA=host:port`, …),
2. a container, when a Docker daemon answers,
3. a server that it starts itself from what the machine has or may fetch.

It prints which one it got. Where none is to be had, the tests that need one fail in CI, and elsewhere are skipped with
a word on how to get it.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def none_to_be_had(what: str, how: str) -> NoReturn:
    """Ends a fixture that found no server: fails in CI, which must have all of them, and skips elsewhere."""
    words = f"not tested against {what}: none is to be had here; {how}"
    if os.environ.get("CI"):
        pytest.fail(words)
    pytest.skip(words)
