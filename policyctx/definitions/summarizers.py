"""The summarizers that ship with the library, by the names that `summary.by` gives."""

from __future__ import annotations

EXTRACTIVE = "extractive"
# Leaves the policy's wording alone in place of the history.
NONE = "none"
# Those that ask a model.
MODEL_SUMMARIZERS = ("anthropic", "openai")
BUILT_IN_SUMMARIZERS = (EXTRACTIVE, NONE, *MODEL_SUMMARIZERS)
