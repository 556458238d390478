"""The shapes of the messages of each API."""
