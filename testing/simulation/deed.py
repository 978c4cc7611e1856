"""Deeds: the actions of a run, for plans of all kinds."""

from __future__ import annotations

from dataclasses import dataclass

from ...model.errors import Fatal, RetryLater, Throttled

#: Seconds that one waits that was throttled and does not say for how long.
THROTTLED = 1.0


@dataclass(frozen=True, slots=True)
class Deed:
    """The deed of one execution: `kind` of KINDS, after `seconds` of true time. `after`: what it asks to wait. `child`:
    the number of an item for whose end it waits then, as with `result()`. `blocks`: the event loop does not turn
    meanwhile. `locks`: it keeps the interpreter lock meanwhile. `adds`: it ends when what its item adds to its tree was
    answered.

    ok, raise, fatal     returns; raises any error; raises Fatal
    later, throttled     raises RetryLater or Throttled, with `after` seconds (None: none given)
    crash                takes its process down
    """

    kind: str
    seconds: float = 0.1
    after: float | None = None
    stubborn: bool = False  # does not end when it is told to
    child: int | None = None
    blocks: bool = False
    locks: bool = False
    adds: bool = False

    def does(self) -> None:
        """Returns, or raises the error of its kind."""
        match self.kind:
            case "ok":
                return
            case "fatal":
                raise Fatal("it can never work")
            case "later":
                raise RetryLater(after=self.after)
            case "throttled":
                raise Throttled("slower", retry_after=self.after or THROTTLED)
        raise ValueError("it failed")


OK = Deed("ok")
