"""`tailrace bench --scenario faults`: real processes under load, a seeded plan of faults, and a journal that judges."""
