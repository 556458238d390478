"""The keys of a policy. These models are their only list; errors and docs derive from it."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    model_validator,
)

from policyctx.policy.values import (
    PLACEHOLDER_FIELDS,
    ROOT_FIELDS,
    SESSION_FIELDS,
    Share,
    amount,
    file_mode,
    keep_recent_map,
    path_template,
    template_of,
)

ItemType = Literal[
    "system_prompt",
    "user_message",
    "assistant_message",
    "thinking",
    "tool_call",
    "tool_result",
    "image",
    "document",
]
ITEM_TYPES: tuple[str, ...] = get_args(ItemType)

Names = Annotated[tuple[str, ...], Strict(strict=False)]
Amount = Annotated[int | Share, PlainValidator(amount)]
Wording = Annotated[str, BeforeValidator(template_of(PLACEHOLDER_FIELDS))]


class Section(BaseModel):
    """A map in a policy: frozen, strictly typed, and closed to unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True
    )


class KeepRecent(Section):
    """How many of the newest items stay, and among whom they are counted."""

    items: Annotated[int, Field(ge=0)]
    """This many of the newest stay."""
    per: Literal["tool", "type", "all"] = "tool"
    """Counted within each tool, each item type, or all that the step selects."""


class Threshold(Section):
    """From which size on an item is taken: one of the two units, or neither."""

    min_tokens: Amount | None = None
    """At this many tokens or above; `10%` is of the context window."""
    min_chars: Annotated[int, Field(ge=0)] | None = None
    """At this many characters (Unicode code points) or above."""

    @model_validator(mode="after")
    def _one_unit(self) -> Threshold:
        if self.min_tokens is not None and self.min_chars is not None:
            raise ValueError("min_tokens and min_chars exclude each other; give one")
        return self


class Rule(Threshold):
    """How items of one type, or results of one tool, are treated."""

    offload: bool | None = None
    """May `offload` take it at all; `false` is absolute. Default: false."""
    keep_recent: Annotated[KeepRecent, BeforeValidator(keep_recent_map)] | None = None
    """The newest N stay: a number (items, per tool), or a map. Default: none."""
    pin: bool | None = None
    """No step takes it. Default: false."""
    placeholder: Wording | None = None
    """The wording left in its place."""


class Select(Threshold):
    """Which items a step takes."""

    types: Annotated[tuple[Literal[ItemType, "*"], ...], Strict(strict=False)] | None = None
    """Item types; `["*"]` is all. Default: every type with `offload: true`."""
    tools: Names | None = None
    """Only results and calls of tools whose name matches one of these globs."""
    except_tools: Names = ()
    """Not those of tools whose name matches one of these globs."""
    errors: bool = True
    """`false` leaves failed results alone."""
    keep_recent: Annotated[KeepRecent, BeforeValidator(keep_recent_map)] | None = None
    """Like the rule of this name, and nearer than it."""


class Step(Section):
    """One line of the pipeline: which items, and what becomes of them."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    """Unique in the policy; `a-z`, `0-9` and `-`."""
    on: Literal["model_call", "arrival"] = "model_call"
    """`model_call`: before a model call, over the whole list. `arrival`: once for each new item."""
    do: Literal["offload"]
    """`offload`: save the content, leave a placeholder."""
    select: Select = Select()
    """Which items; without it, every item that may be taken."""
    placeholder: Wording | None = None
    """The wording of this step."""
    must_shrink: bool = True
    """Leave an item alone whose placeholder would not be smaller."""

    @model_validator(mode="after")
    def _fits_its_moment(self) -> Step:
        if self.on == "arrival" and self.select.keep_recent is not None:
            raise ValueError("keep_recent has no meaning on arrival, where items come one by one")
        return self


class Store(Section):
    """Where offloaded content goes, and how it is written."""

    root: Annotated[str, BeforeValidator(template_of(ROOT_FIELDS)), Field(min_length=1)] = (
        "~/.agent/context/{session_id}"
    )
    """A folder; `~` and `{session_id}` are filled in."""
    session_id: Annotated[str, BeforeValidator(template_of(SESSION_FIELDS))] = (
        "session_{date}_{time}_{random}"
    )
    """The form of a new session's id."""
    path: Annotated[str, BeforeValidator(path_template)] = "{item_type}/{tool_name}/{item_id}.{ext}"
    """The file's path below the root."""
    on_conflict: Literal["suffix", "overwrite", "error"] = "suffix"
    """When another item has the name: append `-1`, `-2`, …; overwrite it; or raise."""
    sync: Literal["always", "never"] = "always"
    """`always`: on stable storage before a placeholder names it."""
    on_failure: Literal["keep", "raise"] = "keep"
    """When a write fails: keep the original in the context and warn, or raise."""
    mode: Annotated[str, BeforeValidator(file_mode)] = "0600"
    """Permissions of the files, octal; folders get the matching x bits."""


class Model(Section):
    """What sizes are measured against."""

    context_window: Annotated[int, Field(gt=0)] = 200_000
    """Tokens that the model can see."""
    tokenizer: Literal["o200k_base", "cl100k_base", "approximate"] = "o200k_base"
    """What counts tokens; `approximate` is characters ÷ 4."""


class Policy(Threshold):
    """One policy document."""

    apiVersion: Literal["policyctx/v1"]  # noqa: N815 - the key's name in the file
    """The version of this language."""
    name: Annotated[str, Field(min_length=1)]
    """What the policy is called."""
    description: str = ""
    """What it is for, in a sentence."""
    model: Model = Model()
    items: dict[ItemType, Rule] = {}
    tools: dict[str, Rule] = {}
    """By tool name or glob: exact names first, then globs in the order written."""
    placeholder: Wording = "[Content offloaded]\nPath: {path}\nUse Read tool to view details."
    """The wording where nothing nearer says otherwise."""
    store: Store = Store()
    steps: Annotated[tuple[Step, ...], Strict(strict=False)] = ()
    """The pipeline, in this order."""

    @model_validator(mode="after")
    def _steps_have_names_of_their_own(self) -> Policy:
        names = [step.name for step in self.steps]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f"two steps are called {twice!r}")
        return self
