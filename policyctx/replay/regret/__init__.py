"""Regret: what a policy removed and the agent then needed, found without asking a model."""
