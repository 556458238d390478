"""What each provider's API adds to the texts of a request: constants, each with its source.

The texts themselves are counted; these constants give the rest, in the provider's tokens. Where a
provider publishes nothing, the figure was measured on recorded sessions and says so. The usage of a
response corrects the remaining difference: see `Correction`.
"""

import re
from dataclasses import dataclass
from math import ceil, sqrt

from policyctx.definitions.items import Provider


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


@dataclass(frozen=True, slots=True)
class ToolMarks:
    """The tokens around the words of a tool's schema, where it is not sent as its JSON."""

    tool: int
    properties: int
    """Once for a tool that has properties."""
    property: int
    enum: int
    """Once for a property that has a list of values."""
    value: int


@dataclass(frozen=True, slots=True)
class ProviderModel:
    """What one provider's API adds to the texts of a request, in its tokens."""

    name: str
    request: int
    """Once for every request: what begins the reply."""
    message: int
    """For every message: its role and what sets it apart."""
    speaker: int
    """For every message that names who speaks, beside the name."""
    tool_call: int
    """For every call, beside the texts of its name and input."""
    tool_result: int
    """For every result, beside its text."""
    tools: int
    """Once when there are tools."""
    tool_marks: ToolMarks | None
    """For every tool; None where its compact JSON is what is sent."""
    image: Patches | Tiles
    page: int
    """For every page of a document: its text and its image."""


# 14 tokens for the texts "You are a scientist" and "Hello, Claude" leave 7 for the request and its
# message (Claude docs, "Token counting"). 346 with tools on Claude 4, `tool_choice: auto` ("Tool
# use", on pricing). A call and its result: 80 beyond their texts, the lower quartile over the
# recorded sessions of Claude Code. Images: from Claude 4.7 on ("Vision"). A page: the middle of
# 1,500 to 3,000 ("PDF support").
ANTHROPIC = ProviderModel(
    "anthropic", request=3, message=4, speaker=0, tool_call=50, tool_result=30,
    tools=346, tool_marks=None, image=Patches(side=28, longest_edge=2_576, most=4_784), page=2_250,
)  # fmt: skip

# Models before Claude 4.7 see images smaller ("Vision").
ANTHROPIC_BEFORE_4_7 = ProviderModel(
    "anthropic-before-4.7", request=3, message=4, speaker=0, tool_call=50, tool_result=30,
    tools=346, tool_marks=None, image=Patches(side=28, longest_edge=1_568, most=1_568), page=2_250,
)  # fmt: skip

# Messages and tools: OpenAI cookbook, "How to count tokens with tiktoken", gpt-4o. Calls and
# results: the marks around them in the published chat format. Images: gpt-4o and gpt-4.1 ("Images
# and vision"). A page: the image of a letter page (765) and 500 for its text, since both are sent.
OPENAI = ProviderModel(
    "openai", request=3, message=4, speaker=1, tool_call=8, tool_result=4, tools=12,
    tool_marks=ToolMarks(tool=7, properties=3, property=3, enum=-3, value=3),
    image=Tiles(base=85, tile=170), page=1_265,
)  # fmt: skip

_HIGH_RESOLUTION_FROM = (4, 7)


def provider_model(provider: Provider, language_model: str | None = None) -> ProviderModel:
    """Return the constants for a request to a model.

    `language_model` is the name in the request, such as `claude-sonnet-4-5`. If it is unknown, the
    constants are those of the `provider` in whose shape the messages are.
    """
    if language_model is None:
        return OPENAI if provider == "openai" else ANTHROPIC
    if "claude" not in language_model:
        return OPENAI
    numbers = re.findall(r"(?<!\d)\d{1,2}(?!\d)", language_model)
    version = tuple(map(int, numbers[:2]))
    return ANTHROPIC_BEFORE_4_7 if () < version < _HIGH_RESOLUTION_FROM else ANTHROPIC
