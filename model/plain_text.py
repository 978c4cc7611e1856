"""Plain text: whatever user code gave as a text, as an exact `str` of bounded length that UTF-8 can write.

A subclass of `str` (a template library's) is refused by fast encoders, and half a surrogate pair (the name of a file
that is not UTF-8) by all of them. Texts of one run must not cost the others that leave in the same frame, so texts are
made plain where they enter, and nowhere else.
"""

from __future__ import annotations

#: The text in place of one that cannot be had: asking for it raised.
UNTELLABLE = "(its text cannot be shown)"


def plain(value: object, length: int) -> str:
    """`value` as text of at most `length` characters: what is no text as `str` shows it, None as nothing, half a
    surrogate pair as its escape (`\\udcff`). Never raises, whatever methods the value has."""
    try:
        if value is None:
            return ""
        text = value if issubclass(type(value), str) else str(value)
        exact = str.__getitem__(text, slice(length + 1))  # type: ignore[index]
        if not exact.isascii():
            exact = exact.encode("utf-8", "backslashreplace").decode()
    except BaseException:  # user code, which may raise anything; nothing of ours is awaited here
        return UNTELLABLE[:length]
    return exact if len(exact) <= length else f"{exact[: length - 1]}…"


def printable(text: str) -> str:
    """A text as one line that drives no terminal: line breaks, control characters and what else is not printable as
    their escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
