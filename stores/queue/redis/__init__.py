"""The queue on Redis: each method is one Lua script over columns."""
