"""The summary that needs no model: lines picked from the history by its structure."""
