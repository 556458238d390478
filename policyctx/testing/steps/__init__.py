"""The step library: one module for each kind of step, each a pytest plugin by itself."""

MODULES = ("contexts", "events", "messages", "files", "results", "compactions")
