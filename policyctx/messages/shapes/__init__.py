"""Message shapes: how the messages of each API, and of each framework, are read and edited."""
