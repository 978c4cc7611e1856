"""kafka-python's sockets that it leaves behind."""

from __future__ import annotations

import socket

from kafka.net.inet import KafkaNetSocket


class LeftBehind(socket.socket):
    """Closed without a word by whoever collects it."""

    def __del__(self) -> None:
        self.close()


def close_what_is_left_behind() -> None:
    """kafka-python 3 leaves the connection of a client that is closed while it connects to one more broker, or has just
    done so, to the garbage collector; Python would warn of it at whatever test runs then. So a warning is of ours."""

    def made(_: KafkaNetSocket, family: int, kind: int, protocol: int) -> socket.socket:
        return LeftBehind(family, kind, protocol)

    KafkaNetSocket.socket = made
