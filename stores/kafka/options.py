"""The connection to a Kafka cluster: the options that a log on Kafka, a Kafka source and every other user of a client
have in common.

Secrets come from the environment (`password: "${KAFKA_PASSWORD}"`), are kept as secrets, and are in no message.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from ...foundation.config import Seconds
from ...model.address import read_address
from ...model.errors import NotConnected

Security = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]


class KafkaOptions(BaseModel):
    """The connection to a cluster.

    bootstrap_servers  one or more host:port, as text with commas or as a list
    client         kafka-python (pure Python), or confluent (librdkafka, faster; the extra kafka-native)
    api_version    the protocol version of the broker, such as "2.1", where it cannot be asked; only for kafka-python
    security       plaintext, ssl, sasl_plaintext or sasl_ssl
    mechanism      of SASL
    username, password   for SASL; write "${VARIABLE}" rather than the secret itself
    ca, certificate, key, key_password   files in PEM for TLS, and the password of the key
    check_hostname whether the broker's certificate must name its host
    isolation      read_committed (records of aborted transactions are left out), or read_uncommitted
    request_timeout   seconds that a request may take
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bootstrap_servers: tuple[str, ...] = Field(("localhost:9092",), min_length=1)
    client: Literal["kafka-python", "confluent"] = "kafka-python"
    api_version: str = Field("", pattern=r"^(\d+\.\d+(\.\d+)?)?$")
    security: Security = "plaintext"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: str = ""
    password: SecretStr = SecretStr("")
    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: SecretStr = SecretStr("")
    check_hostname: bool = True
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    request_timeout: Seconds = Field(10.0, ge=1, le=300)

    @field_validator("bootstrap_servers", mode="before")
    @classmethod
    def _as_a_list(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("bootstrap_servers")
    @classmethod
    def _are_addresses(cls, servers: tuple[str, ...]) -> tuple[str, ...]:
        for server in servers:
            if read_address(server) is None:
                raise ValueError(f"{server!r} is no address: expected host:port, such as localhost:9092")
        return servers

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.security.startswith("sasl") and not (self.username and self.password.get_secret_value()):
            raise ValueError(f'security "{self.security}" needs username and password')
        if self.username and not self.security.startswith("sasl"):
            raise ValueError('a username is sent with SASL only: add "security: sasl_ssl" (or sasl_plaintext)')
        if self.api_version and self.client != "kafka-python":
            raise ValueError('api_version is for "client: kafka-python" only, librdkafka asks the broker: remove it')
        return self

    def check_files(self) -> None:
        """Raises NotConnected for a TLS file that cannot be read (now): a client would only say that it failed."""
        for name, path in (("ca", self.ca), ("certificate", self.certificate), ("key", self.key)):
            try:
                if path:
                    Path(path).read_bytes()
            except OSError as error:
                words = f'"{name}" {path} cannot be read ({error.strerror}): put the file there, or mend its path'
                raise NotConnected(f"{self.where}: {words}") from None

    def somebody_listens(self) -> bool:
        """Whether the first broker's port accepts a connection. Blocks for a second at most."""
        address = read_address(self.bootstrap_servers[0])
        assert address is not None, "checked when it was read"
        try:
            with socket.create_connection((address.bare_host, address.port), timeout=1):
                return True
        except OSError:
            return False

    @property
    def where(self) -> str:
        """The cluster, as messages name it."""
        return f"Kafka at {','.join(self.bootstrap_servers)}"
