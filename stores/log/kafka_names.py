"""The name of a stream ↔ the name of its topic: a prefix, and letters that a topic's name may not have, written as
_XX."""

from __future__ import annotations

import re

from ...model.errors import InvalidRequest

LONGEST = 249
_PLAIN = re.compile(r"[A-Za-z0-9.-]")
_ESCAPED = re.compile(r"__|_[0-9a-f]{2}")


def topic_of(prefix: str, stream: str) -> str:
    """The topic of a stream: `due.send_email` is `tailrace.due.send__email`. Raises InvalidRequest for a name that is
    too long for a topic."""
    topic = prefix + "".join(_escape(letter) for letter in stream)
    if len(topic) > LONGEST:
        raise InvalidRequest(
            f"stream {stream!r}: the name of its Kafka topic would have {len(topic)} letters, at most {LONGEST} are "
            "allowed: use a shorter name"
        )
    return topic


def stream_of(prefix: str, topic: str) -> str | None:
    """The stream of a topic; None when it is none of ours."""
    if not topic.startswith(prefix):
        return None
    raw, at = b"", 0
    rest = topic[len(prefix) :]
    while at < len(rest):
        if rest[at] != "_":
            raw, at = raw + rest[at].encode(), at + 1
        elif (match := _ESCAPED.match(rest, at)) is not None:
            raw += b"_" if match[0] == "__" else bytes.fromhex(match[0][1:])
            at = match.end()
        else:
            return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _escape(letter: str) -> str:
    if _PLAIN.match(letter):
        return letter
    return "__" if letter == "_" else "".join(f"_{byte:02x}" for byte in letter.encode())
