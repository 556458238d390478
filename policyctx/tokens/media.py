"""What images and documents weigh: they are billed by size, never as their base64 text."""

from __future__ import annotations

# An image is scaled down by providers until it costs at most about this; without decoding it,
# the most is the safe figure.
TOKENS_PER_MEDIUM = 1_600
