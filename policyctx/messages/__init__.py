"""Messages of providers as items, edits of messages, and the rules for valid lists."""
