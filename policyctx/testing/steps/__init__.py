"""The step library: one module for each kind of step, each a pytest plugin by itself."""

MODULES = (
    "policies",
    "contexts",
    "events",
    "items",
    "messages",
    "files",
    "results",
    "compactions",
)
