"""Mapping of a source's records to items: function, kind, key and headers, as the tailer's file says."""
