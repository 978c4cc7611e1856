"""`tailrace bench --scenario faults`: runs real processes under load and a seeded plan of faults, and judges by a
journal."""
