-- Members of the fleet: processes with tailers, as they tell of themselves, and what one asks of another.

CREATE TABLE members (
    id text PRIMARY KEY,
    place text NOT NULL,
    told text NOT NULL,
    until timestamptz NOT NULL
);

CREATE TABLE member_orders (
    id text PRIMARY KEY,
    member text NOT NULL,
    asked text NOT NULL,
    answer text NOT NULL DEFAULT '',
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
