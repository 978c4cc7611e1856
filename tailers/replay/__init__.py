"""Running a part of a stream's past again, sealed from the live tailer: what `tailrace replay` asks for."""
