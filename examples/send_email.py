"""A function, and a program that gives it something to do.

In one terminal:   tailrace up --functions examples/send_email.py
In another one:    python examples/send_email.py ann@example.org ben@example.org
"""

from __future__ import annotations

import re
import sys

import tailrace


@tailrace.function(priority="interactive", timeout="30s", retry=tailrace.Retry(max_attempts=5))
async def send_email(to: str, body: str, ctx: tailrace.Context) -> str:
    """Pretends to send: an address that cannot be right is fatal, a first attempt to `later@…` fails for a moment."""
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", to):
        raise tailrace.Fatal(f"{to!r} is not an address")
    if to.startswith("later@") and ctx.attempt == 1:
        raise tailrace.RetryLater("the mail server is busy", after="1s")
    ctx.log.info("sent %d characters to %s", len(body), to)
    return f"sent to {to} at attempt {ctx.attempt}"


def main(addresses: list[str]) -> None:
    """Submits one workload for each address, waits, and prints the result or the failure of each."""
    with tailrace.Client() as client:
        calls = [tailrace.Call(send_email, to=address, body="hi") for address in addresses]
        for handle in client.submit_many(calls):
            try:
                print(handle.result(timeout=30))
            except tailrace.WorkloadFailed as failed:
                print(f"{handle.id}: {failed}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["ann@example.org", "later@example.org", "nobody"])
