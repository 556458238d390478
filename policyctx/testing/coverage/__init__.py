"""Rule coverage: which rules of a policy scenarios made decide, and which way."""
