"""The schemas of stores on a server, as numbered steps that are applied once each."""
