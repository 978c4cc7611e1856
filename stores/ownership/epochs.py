"""Where epochs count from: the same in every engine, so that a stream may move from one to another."""

#: 2020-01-01, in seconds since 1970. 31 bits of seconds last until 2088.
EPOCHS_FROM = 1_577_836_800
