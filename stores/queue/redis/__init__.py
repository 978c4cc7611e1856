"""The queue on Redis: each verb is one Lua script over columns."""
