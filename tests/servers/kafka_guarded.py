"""A Kafka broker that checks its callers: its settings, and the credentials with which a test comes in or is refused.

| listener | security | who may come |
|---|---|---|
| `plain` | plaintext | anybody, as nobody, who may do all |
| `sasl` | sasl_plaintext | users by PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 |
| `tls` | sasl_ssl | users by SCRAM-SHA-512; its certificate is of `ca` and names 127.0.0.1 alone |
| `mutual` | ssl | whoever has a certificate of `ca`; `certificate` and `key` are one's who may do all |

`owner` may do everything, `reader` nothing but what a test allows with `allow`.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tailrace.bench.kafka_nodes import KafkaNode

PASSWORDS = {"owner": "secret-of-owner", "reader": "secret-of-reader"}
_SECONDS = 20.0
_ROUNDS = 4096
_JAAS = "org.apache.kafka.common.security"


def guarded_settings(folder: Path) -> dict[str, str]:
    """Settings for every server.properties of a cluster. Writes the certificates into `folder`."""
    _certificates(folder)
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    scram = f"{_JAAS}.scram.ScramLoginModule required;"
    listeners = {
        "PLAIN": ("PLAINTEXT", "{node.plain}"),
        "PROXIED": ("SASL_PLAINTEXT", "{node.proxied}"),
        "TLS": ("SASL_SSL", "{node.advertised}"),
        "MUTUAL": ("SSL", "{node.spare}"),
    }
    advertised = ",".join(f"{name}://{address}" for name, (_, address) in listeners.items())
    settings = {
        "listeners": f"{advertised},CONTROLLER://{{node.controller}}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": ",".join(
            [*(f"{name}:{protocol}" for name, (protocol, _) in listeners.items()), "CONTROLLER:PLAINTEXT"]
        ),
        "listener.name.proxied.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.proxied.plain.sasl.jaas.config": f"{_JAAS}.plain.PlainLoginModule required {users};",
        "listener.name.proxied.scram-sha-256.sasl.jaas.config": scram,
        "listener.name.proxied.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.tls.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.tls.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.mutual.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:owner;User:CN=owner",
    }
    for listener in ("tls", "mutual"):
        settings |= {
            f"listener.name.{listener}.ssl.keystore.type": "PEM",
            f"listener.name.{listener}.ssl.keystore.location": str(folder / "broker.pem"),
            f"listener.name.{listener}.ssl.truststore.type": "PEM",
            f"listener.name.{listener}.ssl.truststore.location": str(folder / "ca.pem"),
        }
    return settings


@dataclass(frozen=True)
class GuardedKafka:
    """Addresses and files; see the top of this file."""

    plain: str
    sasl: str
    tls: str
    mutual: str
    folder: str

    @classmethod
    def of(cls, node: KafkaNode, folder: Path) -> GuardedKafka:
        """Makes the users of a node that was started with `guarded_settings`."""
        guarded = cls(node.plain, node.proxied, node.advertised, node.spare, str(folder))
        for user, password in PASSWORDS.items():
            guarded.set_password(user, password)
        return guarded

    def file(self, name: str) -> str:
        """The path of a file: ca, stranger (another authority), certificate or key (of a client who may do all)."""
        return str(Path(self.folder) / f"{name}.pem")

    def set_password(self, user: str, password: str) -> None:
        """Sets a user's password, for both mechanisms of SCRAM."""
        admin = self._admin()  # what it answers is gone with it
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):  # one user at a time
            information = ScramCredentialInfo(mechanism, _ROUNDS)
            wanted = UserScramCredentialUpsertion(user, information, password.encode())
            _done(admin.alter_user_scram_credentials([wanted]))

    def allow(self, user: str, *, topic: str = "", group: str = "") -> None:
        """Grants the rights that reading a topic, or using a group, takes."""
        kinds = {ResourceType.TOPIC: topic, ResourceType.GROUP: group}
        operations: Sequence[AclOperation] = (AclOperation.READ, AclOperation.DESCRIBE)
        acls = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
            for kind, name in kinds.items()
            if name
            for operation in operations
        ]
        admin = self._admin()
        _done(admin.create_acls(acls))

    def _admin(self) -> Any:
        return AdminClient({"bootstrap.servers": self.plain})


def _done(answers: Any) -> None:
    for answer in answers.values():
        answer.result(_SECONDS)


def _certificates(folder: Path) -> None:
    """Two authorities, of which the broker trusts `ca`; its own certificate, and a client's."""
    folder.mkdir(parents=True, exist_ok=True)
    key, ca = _issued("tailrace tests", None)
    _write(folder / "ca.pem", ca)
    _write(folder / "stranger.pem", _issued("somebody else", None)[1])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    broker_key, broker = _issued("broker", (key, ca), here)
    _write(folder / "broker.pem", broker_key, broker, ca)
    client_key, client = _issued("owner", (key, ca))
    _write(folder / "key.pem", client_key)
    _write(folder / "certificate.pem", client)


_Key = ec.EllipticCurvePrivateKey
_Certificate = x509.Certificate


def _issued(
    name: str, by: tuple[_Key, _Certificate] | None, where: x509.SubjectAlternativeName | None = None
) -> tuple[_Key, _Certificate]:
    """Makes a key and its certificate, for a day; without `by` that of an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    signer, issuer = (key, subject) if by is None else (by[0], by[1].subject)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if where is not None:
        made = made.add_extension(where, critical=False)
    return key, made.sign(signer, hashes.SHA256())


def _write(path: Path, *parts: _Key | _Certificate) -> None:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    texts = [
        part.public_bytes(form[0]) if isinstance(part, _Certificate) else part.private_bytes(*form) for part in parts
    ]
    path.write_bytes(b"".join(texts))
