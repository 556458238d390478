"""Hosts of agents: SDKs, frameworks and hooks, one thin module each."""
