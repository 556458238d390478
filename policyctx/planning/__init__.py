"""The decisions: which items leave the context, and why. Pure functions from values to values."""
