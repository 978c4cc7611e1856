"""Replays: a part of a stream's past is run again, apart from the live tailer (`tailrace replay`)."""
