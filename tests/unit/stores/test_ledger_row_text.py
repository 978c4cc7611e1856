"""The text of a row is compared by every write of it, also by versions that wrote it otherwise: it has one form."""

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.model.tries import Try
from tailrace.stores.ledger.text import entry_of, entry_text

TIMES = st.one_of(st.floats(0, 1e12), st.integers(0, 1 << 40), st.just(math.inf))
COUNTS = st.integers(0, 1 << 62)
TRIES = st.lists(
    st.builds(Try, st.floats(0, 1e12), st.sampled_from(["retry", "lost"]), st.text(max_size=20)), max_size=2
)
ROWS = st.builds(
    LedgerEntry,
    COUNTS,
    st.sampled_from(LedgerPlace),
    COUNTS,
    TIMES,
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    TIMES,
    TRIES.map(tuple),
)


@settings(max_examples=40)
@given(ROWS)
def test_a_row_is_written_as_json_writes_its_fields(row: LedgerEntry) -> None:
    fields = row._replace(due=float(row.due), first_seen=float(row.first_seen))
    assert entry_text(row) == json.dumps(fields if row.tries else fields[:-1])


@settings(max_examples=40)
@given(ROWS.filter(lambda row: math.isfinite(row.due) and math.isfinite(row.first_seen)))
def test_a_row_that_is_read_is_the_one_that_was_written(row: LedgerEntry) -> None:
    assert entry_of(json.loads(entry_text(row))) == row
