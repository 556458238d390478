"""Policies and the edits of Anthropic's server-side context management, from one to the other."""
