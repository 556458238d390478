"""Replacing history by a summary."""
