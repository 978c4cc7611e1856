"""Places of objects, as files name them, and references to them."""

import json

import pytest
from pydantic import ValidationError

from tailrace.foundation.object_places import Place, place_for
from tailrace.model.errors import InvalidPayload
from tailrace.model.reference import Reference, decode


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"url": "http://x"}, "expected s3://"),
        ({"url": "s3://"}, "expected s3://BUCKET/PREFIX"),
        ({"url": "s3://key:secret@bucket"}, "without credentials"),
        ({"url": "s3://bucket?x=1"}, "without credentials"),
        ({"url": "file://relative/path"}, "absolute path"),
        ({"url": "file:relative"}, "absolute path"),
        ({"url": "file:///a/../b"}, "plain path"),
        ({"url": "file:///a/%2e%2e/b"}, "plain path"),
        ({"url": "s3://bucket/a//b"}, "plain path"),
        ({"url": "file:///a", "endpoint": "http://x"}, "has none"),
        ({"url": "s3://bucket", "endpoint": "127.0.0.1:9000"}, "expected http://"),
        ({"url": "gs://bucket", "region": "x"}, "only an s3:// place"),
        ({"url": "s3://bucket", "credentials": {"key": "x"}}, "unknown key"),
        ({"url": "s3://bucket", "anonymous": True, "credentials": {"access_key_id": "x"}}, "anonymous"),
        ({"url": "az://box", "anonymous": True, "credentials": {"account_name": "n", "sas_key": "x"}}, "anonymous"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(keys, why):
    with pytest.raises(ValidationError, match=why) as caught:
        Place(**keys)
    assert "key:secret" not in str(caught.value)


def test_secrets_are_shown_to_nobody_but_our_own_processes():
    place = Place(url="s3://bucket", credentials={"secret_access_key": "hush"})
    assert "hush" not in repr(place) and "hush" not in str(place.model_dump())
    assert Place.model_validate_json(place.reveal()) == place


def test_an_account_has_a_name_also_for_who_asks_without_credentials():
    assert Place(url="az://box", anonymous=True, credentials={"account_name": "n"}).anonymous


def test_the_nearest_place_holds_a_url():
    wide, near = Place(url="s3://bucket"), Place(url="s3://bucket/in/", region="eu-west-1")
    assert place_for("s3://bucket/in/2026", [wide, near]).region == "eu-west-1"
    assert place_for("s3://bucket/in/2026", [wide, near]).url == "s3://bucket/in/2026"
    assert place_for("s3://bucket/out", [wide, near]).region == ""
    assert place_for("s3://bucketful", [wide, near]) is None


@pytest.mark.parametrize("url", ["file:///in/../etc", "file:///in/%2e%2e/etc", "file:///in/./x", "file:///in/x?y"])
def test_no_url_leads_out_of_a_place(url):
    assert place_for(url, [Place(url="file:///in")]) is None


def test_a_reference_comes_back_and_anything_else_is_refused():
    reference = Reference("s3://b/p", "k é", 5, 1.5, 'e:"x"', True, 2, 3)
    assert decode(reference.encode()) == reference
    for payload in (b"", b"\xff", b"[]", b"{}", b'{"url": 1, "key": "k"}', b'{"url": "u", "key": "k", "more": 1}',
                    b'{"url": "u", "key": "k", "size": true}'):  # fmt: skip
        with pytest.raises(InvalidPayload):
            decode(payload)
    assert "secret" not in json.loads(reference.encode())
