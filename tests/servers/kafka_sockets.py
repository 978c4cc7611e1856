"""Sockets that kafka-python leaves behind."""

from __future__ import annotations

import socket

from kafka.net.inet import KafkaNetSocket


class LeftBehind(socket.socket):
    """A socket that is closed without a word when it is collected."""

    def __del__(self) -> None:
        self.close()


def close_what_is_left_behind() -> None:
    """Closes connections that kafka-python 3 leaves to the garbage collector: that of a client that is closed while it
    connects to one more broker, or has just done so. Python would warn of it at whatever test runs then; so a warning
    is of ours."""

    def made(_: KafkaNetSocket, family: int, kind: int, protocol: int) -> socket.socket:
        return LeftBehind(family, kind, protocol)

    KafkaNetSocket.socket = made
