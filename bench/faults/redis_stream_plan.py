"""The plan of a run around Redis Streams: twelve of them in three tailers' files, each of which any of the three
processes may own.
"""

from __future__ import annotations

from .plan import Breakage
from .streams_plan import KILL, OTHER, ROLL, SERVERS, TAILERS, TWO, WIRE, Mix

#: The part that is the server.
SERVER = "redis"
#: A file is owned as a whole, so that one for each process has them share the streams.
FILES = tuple(f"faults-{number + 1}" for number in range(len(TAILERS)))
STREAMS = tuple(f"faults:{number}" for number in range(12))
#: Ten rounds and the minute in which everything fails: ten rolling restarts of the tailers, ten kills of one, twenty of
#: the server (ten with something else at once), and the rest.
MIX = Mix(
    "redis streams",
    (KILL, WIRE, SERVERS, ROLL, OTHER, TWO),
    whole=61,
    outage_after=20,
    killers=500,
    more=(Breakage("stop", SERVER, 1.15),),
    shuffled=True,
)


def file_of(stream: int) -> str:
    """The tailer whose file names a stream."""
    return FILES[stream % len(FILES)]
