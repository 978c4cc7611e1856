"""What people type about tailers: their files, their state, their streams."""
