"""kafka-python's sockets whose connection is given up before it stands."""

from __future__ import annotations

from typing import Any

from kafka.net.inet import KafkaNetSocket


def close_what_is_given_up() -> None:
    """kafka-python 3 leaves such a socket to the garbage collector, of which Python warns at whatever test runs then: a
    client that is closed while it connects to one more broker. Here it is closed, so that a warning is about ours."""
    connects = KafkaNetSocket.sock_connect

    async def sock_connect(self: KafkaNetSocket, net: Any, sock: Any, *more: Any, **options: Any) -> Any:
        try:
            return await connects(self, net, sock, *more, **options)
        except BaseException:
            sock.close()
            raise

    KafkaNetSocket.sock_connect = sock_connect
