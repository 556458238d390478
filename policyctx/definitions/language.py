"""The words of the language: actions, gates, summarizers, tools for reading back, wordings."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Literal, Protocol, Self, TypeAlias

DEFAULT = "[Content offloaded]\nPath: {path}"
# Follows a line that is cut, and a line's number, where a policy does not say.
CUT_MARK = "…"
NUMBER_SEPARATOR = "\t"
# A line after the default wording when the session knows a tool that reads the file.
HOW_TO_READ = "Use {tool} tool to view details."
# What `{how_to_read}` shows while the session knows no tool of its own that does.
READ_AGAIN = "Read that file when you need it again."
# How the paragraph begins that `{how_to_search}` shows behind a summary.
REPLACED_IS_IN = "All that was replaced is in "
SEARCH_ARCHIVE = (
    "\n\n" + REPLACED_IS_IN + "{path}, with earlier archives beside it. Search them with {how}"
)


# The words of `do:`.
Do: TypeAlias = Literal["offload", "clear", "drop", "compact"]


class Leaves(Enum):
    """What an action leaves in the message list."""

    ITEM = "the item"
    PLACEHOLDER = "a placeholder"
    NOTHING = "nothing"
    SUMMARY = "a summary in place of all messages that it takes"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition:
    past: str
    leaves: Leaves
    do: Do | None
    meaning: str = ""
    saves: bool = False
    is_bound_by_rules: bool = False
    text: str | None = None
    keys_without_use: tuple[str, ...] = ()
    selection_without_use: Mapping[str, str] = field(default_factory=dict)


class Action(StrEnum):
    """What happens to an item; the value is its name in plans, records and reports."""

    past: str
    """The past tense, which names the state of an item: `offloaded`."""
    do: Do | None
    """The word of `do:` for it; None for what no step does."""
    meaning: str
    """What it does, for the reference."""
    saves: bool
    """Whether the content of each item is saved before the item leaves the list."""
    leaves: Leaves
    """What it leaves in the message list."""
    leaves_placeholder: bool
    """Whether it leaves a placeholder for each item."""
    leaves_nothing: bool
    """Whether it leaves nothing of an item, and takes what a placeholder stands for too."""
    keeps_place: bool
    """Whether an item after it, or its placeholder, is still at its place in the list."""
    takes_messages: bool
    """Whether it takes whole messages: it ends the pipeline and is not for arrival."""
    is_bound_by_rules: bool
    """Whether the rules of items and tools bind it: `offload: true` and the thresholds."""
    text: str | None
    """The text of its placeholder where the policy gives none; None for that of the policy."""
    keys_without_use: tuple[str, ...]
    """The keys that a step with this action must not have."""
    selection_without_use: Mapping[str, str]
    """The keys that its `select` must not have, each with the reason."""

    def __new__(cls, name: str, definition: _Definition) -> Self:
        """Make a member from its name and its definition."""
        member = str.__new__(cls, name)
        member._value_ = name
        for key in _Definition.__slots__:
            setattr(member, key, getattr(definition, key))
        left = definition.leaves
        member.leaves_placeholder = left is Leaves.PLACEHOLDER
        member.leaves_nothing = left is Leaves.NOTHING
        member.keeps_place = left in {Leaves.ITEM, Leaves.PLACEHOLDER}
        member.takes_messages = left is Leaves.SUMMARY
        return member

    KEEP = "keep", _Definition(past="kept", leaves=Leaves.ITEM, do=None)
    OFFLOAD = (
        "offload",
        _Definition(
            past="offloaded",
            leaves=Leaves.PLACEHOLDER,
            do="offload",
            meaning="save, leave the placeholder",
            saves=True,
            is_bound_by_rules=True,
            keys_without_use=("compaction",),
        ),
    )
    CLEAR = (
        "clear",
        _Definition(
            past="cleared",
            leaves=Leaves.PLACEHOLDER,
            do="clear",
            meaning="leave the placeholder, save nothing",
            is_bound_by_rules=True,
            text="[Old tool result cleared; make the call again if you need it]",
            keys_without_use=("compaction",),
        ),
    )
    DROP = (
        "drop",
        _Definition(
            past="dropped",
            leaves=Leaves.NOTHING,
            do="drop",
            meaning="save, remove",
            saves=True,
            keys_without_use=("compaction", "placeholder", "must_shrink"),
            selection_without_use={"with_input": "a call goes with its result"},
        ),
    )
    SUMMARISE = (
        "summarise",
        _Definition(
            past="summarised",
            leaves=Leaves.SUMMARY,
            do="compact",
            meaning="summarise; must be last",
            keys_without_use=("select", "must_shrink"),
        ),
    )


# Each action by its past tense, which names the state of an item in the store's records.
BY_STATE: dict[str, Action] = {action.past: action for action in Action}
# The actions of steps, by the word of `do:`.
STEP_ACTIONS: dict[str, Action] = {action.do: action for action in Action if action.do}
# The actions of steps that take items.
ITEM_ACTIONS: tuple[Action, ...] = tuple(a for a in STEP_ACTIONS.values() if not a.takes_messages)


# What kind of number a gate compares, which decides how it is shown and how it may be written.
Kind: TypeAlias = Literal["tokens", "count", "ratio", "seconds"]


@dataclass(frozen=True, slots=True)
class Gate:
    """What is special about one gate.

    `whole` says that its number is an integer. No number is above `highest`, and `why_highest` says
    why; for `kind="tokens"` the limit is the context window. `why_never_zero` says why the gate
    stays closed where its number would be 0. `sizes` names what planning sums up for it over all
    that the step selects: the tokens `freed`, or the unit that the gate's own key `of` gives.
    `holds_gates` says that its keys are gates themselves; its own kind then means nothing.
    """

    kind: Kind
    whole: bool = False
    highest: int | None = None
    why_highest: str = ""
    why_never_zero: str = ""
    sizes: Literal["", "freed", "of"] = ""
    needs_price: bool = False
    holds_gates: bool = False


class _Noted(Protocol):
    """A map of gates."""

    def noted(self, kind: type[Gate]) -> Mapping[str, Gate]: ...


def gates_in(gates: _Noted) -> Iterator[tuple[str, Any, Gate]]:
    """Yield the name, the value and the definition of each gate that a map gives.

    A gate in a gate that holds gates is named `outer.inner`.
    """
    for name, gate in gates.noted(Gate).items():
        given = getattr(gates, name)
        if given is None:
            continue
        if not gate.holds_gates:
            yield name, given, gate
            continue
        for inner, value, definition in gates_in(given):
            yield f"{name}.{inner}", value, definition


@dataclass(frozen=True, slots=True)
class Comparison:
    """One key of a gate: its sign, and its sign when it does not hold.

    `is_lower` says that the number must be above the limit, `is_open` that the limit itself does
    not count.
    """

    sign: str
    opposite: str
    is_lower: bool
    is_open: bool


class Nothing(StrEnum):
    """Why a gate had no number to compare; the value is in reports."""

    MEASURED = "nothing_measured"
    SELECTED = "nothing_selected"
    CALLED = "no_call_yet"
    SAVED = "never"

    @property
    def sentence(self) -> str:
        """The reason in words."""
        return _SENTENCES[self]


_SENTENCES = {
    Nothing.MEASURED: "there is nothing in the messages",
    Nothing.SELECTED: "nothing is selected",
    Nothing.CALLED: "no model was called yet",
    Nothing.SAVED: "nothing would be saved",
}


READ_TOOL = "read_offloaded"
SEARCH_TOOL = "search_offloaded"

# A host may put the name of the tool's server before it: `mcp__policyctx__read_offloaded`.
_RECALL = re.compile(rf"(?:.*[^A-Za-z0-9])?({READ_TOOL}|{SEARCH_TOOL})", re.DOTALL)


def recall_tool(name: str | None) -> str | None:
    """Return which of the two tools has this name, with or without a prefix; None for another."""
    if name is None or not name.endswith("_offloaded"):
        return None
    found = _RECALL.fullmatch(name)
    return None if found is None else found[1]


SCHEMES = ("s3", "gs", "az", "file")
# The scheme whose URLs name no bucket but a folder.
_FOLDER = "file"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(/.*)?", re.DOTALL)


def is_url(root: str) -> bool:
    """Whether a root is written as a URL; every other text is the path of a folder."""
    return _URL.fullmatch(root) is not None


def url_problem(root: str) -> str:
    """Return what is wrong with the URL of a store; "" for nothing."""
    found = _URL.fullmatch(root)
    scheme, bucket, below = found.groups("") if found else ("", "", "")
    if scheme not in SCHEMES:
        known = ", ".join(f"{one}://" for one in SCHEMES)
        return f"expected a folder, or a URL that begins with one of {known}"
    inner = below.strip("/")
    problems = {
        "a URL must not contain credentials; they come from the environment alone": "@" in bucket,
        "a URL of a store has no query and no fragment": not {"?", "#"}.isdisjoint(root),
        "expected file:///FOLDER, with an absolute path": scheme == _FOLDER
        and bool(bucket or not inner),
        f"expected {scheme}://BUCKET/PREFIX": scheme != _FOLDER and not bucket,
        "a URL of a store has no empty, `.` or `..` parts": bool(inner)
        and not {"", ".", ".."}.isdisjoint(inner.split("/")),
    }
    return next((text for text, is_so in problems.items() if is_so), "")


EXTRACTIVE = "extractive"
# Leaves the policy's wording alone in place of the history.
NONE = "none"
# Those that ask a model.
MODEL_SUMMARIZERS = ("anthropic", "openai")
BUILT_IN_SUMMARIZERS = (EXTRACTIVE, NONE, *MODEL_SUMMARIZERS)
