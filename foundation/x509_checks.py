"""Checks of X.509 certificates: reads the caller's name, and checks time, key, chain, authority and revocation."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ..model.caller import Caller, caller_of
from ..model.errors import ConfigError, InvalidRequest

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, CertificateRevocationList

EXTRA = 'certificates need the extra "tls": pip install "tailrace[tls]"'
#: The most certificates of a chain, authorities, and lists of revoked certificates that are looked at.
MOST = 16
#: Issuer and serial number of a certificate: an authority gives each number once, two may give the same one.
Serial = tuple[bytes, int]
_LIST = re.compile(rb"-----BEGIN X509 CRL-----.+?-----END X509 CRL-----", re.DOTALL)
_LIST_BEGINS = b"-----BEGIN X509 CRL-----"


class PeerCertificate(NamedTuple):
    """The certificate of one side: its caller, its first and last moment (wall clock seconds), its serial number, and
    the name of its issuer."""

    caller: Caller
    since: float
    until: float
    serial: int = 0
    issuer: bytes = b""


def parsed(data: bytes, where: str) -> list[Certificate]:
    """Certificates in a text of PEM, the first one first. Raises ConfigError."""
    try:
        from cryptography import x509
    except ImportError:
        raise ConfigError(EXTRA) from None
    try:
        found = x509.load_pem_x509_certificates(data)
    except ValueError:
        raise ConfigError(f"{where}: no certificate in PEM; expected -----BEGIN CERTIFICATE-----") from None
    if len(found) > MOST:
        raise ConfigError(f"{where}: {len(found)} certificates, expected at most {MOST}")
    return found


def peer_of(certificate: Certificate) -> PeerCertificate:
    """The caller and the other facts of a certificate. Raises InvalidRequest for one that does not name its caller as
    this platform does."""
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except x509.ExtensionNotFound:
        uris = []
    except ValueError:
        raise InvalidRequest("the certificate's alternative names cannot be read") from None
    since, until = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    return PeerCertificate(caller_of(uris), since, until, certificate.serial_number, certificate.issuer.public_bytes())


def peer_of_der(data: bytes) -> PeerCertificate:
    """The caller and the other facts of a certificate in DER, as `peer_of` gives them."""
    from cryptography import x509

    return peer_of(x509.load_der_x509_certificate(data))


def usable(certificate: Certificate, where: str, now: float) -> PeerCertificate:
    """The caller and the other facts of a certificate that is valid now. Raises ConfigError."""
    try:
        found = peer_of(certificate)
    except InvalidRequest as error:
        raise ConfigError(f"{where}: {error}") from None
    if why := out_of_time(found, now):
        raise ConfigError(f"{where}: {why}")
    return found


def revocations(data: bytes, authorities: Sequence[Certificate], where: str) -> frozenset[Serial]:
    """Certificates in all lists of revoked ones. Raises ConfigError."""
    return frozenset().union(*lists_of(data, authorities, where).values())


def lists_of(data: bytes, authorities: Sequence[Certificate], where: str) -> dict[bytes, frozenset[Serial]]:
    """The lists of revoked certificates (CRL) in PEM, one behind the other, or one in DER: by the key of the authority,
    which must have signed it. An old list stays in force. Raises ConfigError."""
    from cryptography import x509

    texts = _LIST.findall(data)
    try:
        if len(texts) != data.count(_LIST_BEGINS):
            raise ValueError
        found = [x509.load_pem_x509_crl(text) for text in texts] or [x509.load_der_x509_crl(data)]
    except ValueError:
        raise ConfigError(f"{where}: no list of revoked certificates; expected -----BEGIN X509 CRL-----") from None
    if len(found) > MOST:
        raise ConfigError(f"{where}: {len(found)} lists, expected at most {MOST}: one of each authority")
    lists: dict[bytes, frozenset[Serial]] = {}
    for number, each in enumerate(found, 1):
        signer = next((authority for authority in authorities if _signed(each, authority)), None)
        if signer is None:
            raise ConfigError(
                f"{where}: no authority of this fleet has signed list {number} of {len(found)}; `tailrace auth revoke` "
                "makes one, and that of an authority which is no longer in ca.crt is to be taken out"
            )
        issuer, key = signer.subject.public_bytes(), key_of(signer)
        lists[key] = lists.get(key, frozenset()) | {(issuer, entry.serial_number) for entry in each}
    return lists


def _signed(found: CertificateRevocationList, authority: Certificate) -> bool:
    try:
        return found.is_signature_valid(authority.public_key())  # type: ignore[arg-type]
    except (ValueError, TypeError):  # an authority with a key of another kind
        return False


def key_of(certificate: Certificate) -> bytes:
    """The public key of a certificate: an authority's stays when its certificate is made anew."""
    from cryptography.hazmat.primitives import serialization

    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return certificate.public_key().public_bytes(*form)


def revoked(found: PeerCertificate, those: Collection[Serial]) -> str:
    """The message that a certificate was revoked; empty: it was not."""
    if (found.issuer, found.serial) in those:
        return f"the certificate of {found.caller} was revoked; make another one with `tailrace auth issue`"
    return ""


def out_of_time(found: PeerCertificate, now: float) -> str:
    """The reason why a certificate is not valid now; empty: it is."""
    if now < found.since:
        return (
            f"the certificate of {found.caller} is valid from {moment(found.since)}, and it is {moment(now)} here: set "
            "the clock right"
        )
    if now >= found.until:
        return (
            f"the certificate of {found.caller} expired at {moment(found.until)}, and it is {moment(now)} here: "
            "make another one with `tailrace auth renew`"
        )
    return ""


def check_key(certificate: Certificate, key: bytes, where: str, at: str) -> None:
    """Raises ConfigError unless the private key in PEM is that of the certificate."""
    from cryptography.hazmat.primitives import serialization

    try:
        private = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError):
        raise ConfigError(
            f"{at}: no private key in PEM without a passphrase; expected -----BEGIN PRIVATE KEY-----"
        ) from None
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if private.public_key().public_bytes(*form) != key_of(certificate):
        raise ConfigError(f"{at}: not the key of {where}; put both of them there together")


def check_chain(chain: Sequence[Certificate], authorities: Sequence[Certificate], where: str, at: str) -> None:
    """Raises ConfigError unless each certificate was issued by the next one, and the last one by an authority."""
    for below, above in pairwise(chain):
        if not _issued(below, above):
            raise ConfigError(f"{where}: the certificates are no chain; put each one's issuer behind it")
    if not any(chain[-1] == each or _issued(chain[-1], each) for each in authorities):
        raise ConfigError(f"{where}: not issued by an authority in {at}: are both of one fleet?")


def leads_to(chain: Sequence[Certificate], authorities: Sequence[Certificate]) -> bool:
    """Whether the first certificate comes from an authority, through others of the chain that may issue some. Each is
    looked at once, in any order."""
    reached = [chain[0]]
    for below in reached:
        if any(below == each or _issued(below, each) for each in authorities):
            return True
        reached += [each for each in chain if each not in reached and _may_issue(each) and _issued(below, each)]
    return False


def _may_issue(certificate: Certificate) -> bool:
    from cryptography import x509

    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _issued(below: Certificate, above: Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        below.verify_directly_issued_by(above)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def moment(at: float) -> str:
    """A moment in the form for people, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
