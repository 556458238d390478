"""Provider message lists seen as items, and back; what a valid list is."""
