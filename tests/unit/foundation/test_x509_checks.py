"""Chains of certificates, and lists of revoked ones, of several authorities."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from tailrace.foundation.x509_checks import MOST, key_of, leads_to, lists_of, peer_of, revocations, revoked
from tailrace.model.errors import ConfigError

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
PEM = serialization.Encoding.PEM


class Made(NamedTuple):
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def made(name: str, issuer: Made | None = None, *, ca: bool = True, serial: int = 7, key: Made | None = None) -> Made:
    private = ec.generate_private_key(ec.SECP256R1()) if key is None else key.key
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    above = subject if issuer is None else issuer.certificate.subject
    uri = x509.UniformResourceIdentifier(f"tailrace://f1/worker/{name}")
    builder = (
        x509.CertificateBuilder(above, subject, private.public_key(), serial, NOW - DAY, NOW + DAY)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([uri]), critical=False)
    )
    return Made(builder.sign(private if issuer is None else issuer.key, hashes.SHA256()), private)


def listing(authority: Made, *serials: int) -> bytes:
    """A list of revoked certificates, in PEM."""
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority.certificate.subject)
    builder = builder.last_update(NOW - DAY).next_update(NOW + DAY)
    for each in serials:
        one = x509.RevokedCertificateBuilder().serial_number(each).revocation_date(NOW).build()
        builder = builder.add_revoked_certificate(one)
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(PEM)


A, B = made("a"), made("b")
BETWEEN = made("between", A)
LEAF, DIRECT = made("leaf", BETWEEN, ca=False), made("direct", A, ca=False)
#: A certificate that somebody made with the key of one who may issue none.
FORGED = made("forged", DIRECT, ca=False)


@pytest.mark.parametrize(
    ("chain", "authorities", "leads"),
    [
        ([DIRECT], [A], True),
        ([DIRECT], [B, A], True),
        ([DIRECT], [B], False),
        ([DIRECT], [], False),
        ([LEAF, BETWEEN], [A], True),
        ([LEAF, BETWEEN, A], [A], True),
        ([LEAF, A, BETWEEN], [A], True),
        ([LEAF, BETWEEN], [BETWEEN], True),
        ([LEAF], [BETWEEN], True),
        ([LEAF], [A], False),
        ([LEAF, BETWEEN, A], [B], False),
        ([LEAF, DIRECT], [A], False),
        ([FORGED, DIRECT], [A], False),
        # two of one name and key, each of another authority
        ([LEAF, made("between", B, key=BETWEEN), BETWEEN], [A], True),
        ([LEAF, BETWEEN, BETWEEN, BETWEEN], [B], False),
    ],
)
def test_a_chain_leads_to_an_authority_by_way_of_those_that_may_issue(
    chain: list[Made], authorities: list[Made], leads: bool
) -> None:
    assert leads_to([each.certificate for each in chain], [each.certificate for each in authorities]) is leads


def test_every_list_of_a_file_counts_each_for_the_certificates_of_its_authority() -> None:
    # Given two authorities that gave the same serial numbers, and the list of each
    authorities = [A.certificate, B.certificate]
    text = b"of a:\n" + listing(A, 1, 2) + b"\n" + listing(B, 2, 3)
    # When they are read, Then there are both, by whose they are
    assert set(lists_of(text, authorities, "crl.pem")) == {key_of(A.certificate), key_of(B.certificate)}
    those = revocations(text, authorities, "crl.pem")
    found = {
        (issuer_name, serial): bool(revoked(peer_of(made("w", issuer, ca=False, serial=serial).certificate), those))
        for issuer_name, issuer in (("a", A), ("b", B))
        for serial in (1, 2, 3)
    }
    assert {each for each, is_revoked in found.items() if is_revoked} == {("a", 1), ("a", 2), ("b", 2), ("b", 3)}
    # And one in DER is taken as well
    der = x509.load_pem_x509_crl(listing(B, 9)).public_bytes(serialization.Encoding.DER)
    assert {serial for _, serial in revocations(der, authorities, "crl.pem")} == {9}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (listing(A, 1) + listing(B, 2), "no authority of this fleet has signed list 2 of 2.*is to be taken out"),
        (listing(B, 2) + listing(A, 1), "no authority of this fleet has signed list 1 of 2"),
        (listing(A, 1)[:-30], "no list of revoked certificates; expected -----BEGIN X509 CRL-----"),
        (listing(A, 1) + listing(A, 2)[:-30], "no list of revoked certificates"),
        (b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "no list of revoked certificates"),
        (b"", "no list of revoked certificates"),
        (listing(A, 1) * (MOST + 1), "17 lists, expected at most 16: one of each authority"),
    ],
)
def test_a_file_of_lists_is_taken_whole_or_refused(text: bytes, says: str) -> None:
    with pytest.raises(ConfigError, match=rf"^crl\.pem: {says}"):
        revocations(text, [A.certificate], "crl.pem")


def test_an_authority_with_a_key_of_another_kind_signed_no_list_of_this_one() -> None:
    other = Made(A.certificate, rsa.generate_private_key(65537, 2048))
    subject = A.certificate.subject
    builder = x509.CertificateBuilder(subject, subject, other.key.public_key(), 1, NOW - DAY, NOW + DAY)
    certificate = builder.sign(other.key, hashes.SHA256())
    assert lists_of(listing(A, 1), [certificate, A.certificate], "crl.pem").keys() == {key_of(A.certificate)}
