"""What an image costs by its size in pixels: the rules of two providers."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt


@dataclass(frozen=True, slots=True)
class Patches:
    """A token for each patch of `side` pixels, once the image is within the limits.

    What is larger than `longest_edge` pixels or `most` tokens is scaled down first. Source: Claude
    docs, "Vision", on evaluating image size.
    """

    side: int
    longest_edge: int
    most: int

    def tokens(self, width: int, height: int) -> int:
        """Return what an image of so many pixels, 1 or more each way, costs."""
        scale = min(1.0, self.longest_edge / max(width, height))
        while (cost := self._patches(width * scale, height * scale)) > self.most:
            scale *= min(sqrt(self.most / cost), 0.999)
        return cost

    def _patches(self, width: float, height: float) -> int:
        return max(1, ceil(width / self.side)) * max(1, ceil(height / self.side))

    @property
    def unknown(self) -> int:
        """What to take for an image whose size is not at hand: the most."""
        return self.most

    @property
    def low_detail(self) -> int:
        """What `detail: low` costs: there is no such thing here."""
        return self.unknown


@dataclass(frozen=True, slots=True)
class Tiles:
    """A base, and a price for each tile of 512 pixels, once the image is scaled down.

    It is fitted into 2,048 pixels, then its shorter side into 768. Source: OpenAI docs, "Images
    and vision", on calculating costs.
    """

    base: int
    tile: int
    side: int = 512
    longest_edge: int = 2_048
    shortest_edge: int = 768

    def tokens(self, width: int, height: int) -> int:
        """Return what an image of so many pixels, 1 or more each way, costs in high detail."""
        scale = min(1.0, self.longest_edge / max(width, height))
        scale = min(scale, self.shortest_edge / min(width, height))
        across, down = ceil(width * scale / self.side), ceil(height * scale / self.side)
        return self.base + self.tile * across * down

    @property
    def unknown(self) -> int:
        """What to take for an image whose size is not at hand: a square one of 768 pixels."""
        return self.tokens(self.shortest_edge, self.shortest_edge)

    @property
    def low_detail(self) -> int:
        """What `detail: low` costs, whatever the size."""
        return self.base
