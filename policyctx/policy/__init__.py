"""The language: what a person may write in a policy, and the only list of its keys."""
