"""Commands about tailers: their files, their state, their streams."""
