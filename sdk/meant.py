"""What somebody may have meant who named something that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def meant(name: str, known: Sequence[str]) -> str:
    """The end of a refusal: the known name that is nearest, as a question, else all of them."""
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"expected {', '.join(known)}"
