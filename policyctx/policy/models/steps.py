"""The pipeline: which items a step takes, when, and what becomes of them."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field

from policyctx.definitions.actions import STEP_ACTIONS, Action, Do
from policyctx.definitions.names import SESSION_FIELDS
from policyctx.policy import values
from policyctx.policy.models.base import ByteSize, Count, Duration, Names, Section, Text, such
from policyctx.policy.models.compaction import Compaction
from policyctx.policy.models.gates import Untils, When
from policyctx.policy.models.rules import Globs, Recency, Threshold, Wording
from policyctx.policy.values import Duration as DurationValue

_ACTIONS = " ".join(f"`{do}`: {action.meaning}." for do, action in STEP_ACTIONS.items())
Escape: TypeAlias = Literal["percent", "_"]


class WithInput(Section):
    """The inputs of calls that share the fate of their results."""

    short_form: ClassVar = "tools"

    tools: Annotated[Globs, such("*", ["write_*"])] = ("*",)
    """Those of tools whose name matches one of these globs."""
    leave: Literal["short_strings", "empty"] = "short_strings"
    """`short_strings`: a placeholder for each string that is longer than it. `empty`: nothing but
    `{}`."""


class KeepFirst(Section):
    """The beginning of the list."""

    messages: Annotated[Count, such(2)]
    """The first N messages behind the system messages that the list begins with."""


class Select(Threshold):
    """Which items a step takes."""

    types: Annotated[Names | None, such(["tool_result"], ["*"])] = None
    """Item types, built-in or your own; `["*"]` is all. Default: all with `offload: true`."""
    tools: Annotated[Globs | None, such("mcp__*", ["Read", "Grep"])] = None
    """Only results and calls of tools whose name matches one of these globs."""
    except_tools: Annotated[Globs, such("update_todo")] = ()
    """Not those of tools whose name matches one of these globs."""
    errors: bool = True
    """`false` leaves failed results alone."""
    keep_recent: Annotated[Recency | None, such(3, {"items": 5, "per": "all"})] = None
    """Like the rule of this name, and nearer than it."""
    keep_first: Annotated[KeepFirst | None, such({"messages": 2})] = None
    """What the list begins with stays, and what would have to leave with it."""
    placeholders: bool = False
    """Also items that another step has offloaded, which get a smaller placeholder for the same
    file. For `offload`, with fields that show nothing of the text."""
    superseded: bool = False
    """Only results that a later one shows again: the same text of the same call, or all lines of a
    file, by `reads_file` and `reads_lines`."""
    ephemeral: bool = False
    """Only items for which a type, a tool or code has set a `keep_recent`."""
    order: Literal["oldest", "largest", "by_type"] = "oldest"
    """Who goes first; `by_type` is in the order of `types`, the oldest of each first."""
    until: Annotated[Untils | None, such({"tokens": {"under": "60%"}})] = None
    """Stop as soon as this holds."""
    unit: Literal["item", "message", "group", "turn"] = "item"
    """What leaves together, for `drop`: each item with its call or result, its message, the model's
    reply with the results of its calls (`group`; any other message is its own), or its turn."""
    with_input: Annotated[
        WithInput | None,
        BeforeValidator(
            values.flag_globs_or_map, json_schema_input_type=bool | Globs | WithInput | None
        ),
        Field(examples=[True, ["write_*"], {"leave": "empty"}]),
    ] = None
    """The call's input shares its result's fate: always, for these tools, or as a map says; not for
    `drop`. Default: `false`."""


class Step(Section):
    """One line of the pipeline."""

    # A file that extends another may take a step out by its name alone.
    model_config = ConfigDict(
        json_schema_extra={
            "required": ["name"],
            "if": {"properties": {"remove": {"const": True}}, "required": ["remove"]},
            "else": {"required": ["do"]},
        }
    )

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$", max_length=60, examples=["retire"])]
    """Unique in the policy; `a-z`, `0-9` and `-`."""
    on: Literal["model_call", "arrival", "overflow"] = "model_call"
    """`model_call`: before a model call, over the whole list. `arrival`: once for each new item. An
    item that may not leave yet is judged again once it may, unless another step has taken it: the
    newest user message, the thinking of the current turn, a call without an answer, and an item
    without which the list would be invalid.
    `overflow`: when the provider has refused the prompt as too long, before it is sent once more.
    """
    do: Annotated[Do, Field(description=_ACTIONS)]
    select: Select = Select()
    """Which items; not for `compact`."""
    when: Annotated[When, such({"tokens": {"at_least": "80%"}})] = ()
    """The gates: a map means all of them, a list of maps any."""
    placeholder: Annotated[Wording | None, such("[Result in {path}]")] = None
    """The wording of this step; not for `drop`."""
    must_shrink: bool = True
    """Leave an item alone whose placeholder would not be smaller."""
    save: bool = True
    """For `drop`: `false` writes no file, so what leaves is gone."""
    compaction: Compaction | None = None
    """For `compact`: keys merged over the policy's `compaction`."""
    before: str | None = None
    """In a policy that extends another: the step before which this new one goes."""
    remove: bool = False
    """In a policy that extends another: take the step of this name out."""

    @property
    def action(self) -> Action:
        """What the step makes of the items that it takes."""
        return STEP_ACTIONS[self.do]

    @property
    def waits_for(self) -> str | None:
        """The name of the step without whose failure this one does not run."""
        return next((gates.failed for gates in self.when if gates.failed is not None), None)

    @property
    def saves(self) -> bool:
        """Whether the content of each item is saved before the item leaves the list."""
        return self.action.saves and self.save


class Retention(Section):
    """How long files stay; what a live placeholder names always does."""

    at_least_one: ClassVar = ("max_age", "max_bytes", "max_contents")

    max_age: Annotated[Duration | None, such("30d")] = None
    """Files older than this go."""
    max_bytes: Annotated[ByteSize | None, such("5GB")] = None
    """The oldest go until the store is this small."""
    max_contents: Annotated[int | None, Field(ge=0, examples=[10_000])] = None
    """The oldest go until the store holds this many texts."""


class Store(Section):
    """The files of a session."""

    root: Annotated[
        str,
        BeforeValidator(values.store_root),
        Field(
            min_length=1,
            examples=[
                ".offload",
                "${CONTEXT_ROOT:-~/.agent/context}",
                "s3://bucket/agents/{session_id}",
            ],
        ),
    ] = "~/.agent/context/{session_id}"
    """A folder, or a URL of `s3`, `gs`, `az` or `file`; `~` and `{session_id}` are filled in."""
    session_id: Annotated[str, BeforeValidator(values.template_of(SESSION_FIELDS))] = (
        "session_{date}_{time}_{random}"
    )
    """The form of a new session's id."""
    path: Annotated[
        str, BeforeValidator(values.path_template), such("{tool_name}/{tool_use_id}.md")
    ] = "{item_type}/{tool_name}/{item_id}.{ext}"
    """A file's path below the root."""
    escape: Escape = "percent"
    """A character of an id or a name that is not `A-Z a-z 0-9 . _ -`: `percent` encodes its bytes,
    so that no two ids share a name; `_` takes its place, and `on_conflict` decides where two ids
    then have one name."""
    format: Literal["text", "envelope"] = "text"
    """`text`: the item's text, bytes as they are. `envelope`: a JSON document around it."""
    blocks: Literal["text", "json"] = "text"
    """The text of a result that is a list of blocks. `text`: the texts of the blocks, joined by a
    newline. `json`: the whole list, as `JSON.stringify` writes it."""
    on_conflict: Literal["suffix", "overwrite", "error"] = "suffix"
    """When another item has the name: append `-1`, `-2`, …; overwrite it; or raise."""
    state: Literal["kept", "none"] = "kept"
    """`kept`: index, journal and ledger beside the files. `none`: content files only,
    each call stands alone."""
    timeout: Annotated[Duration, such("10s")] = DurationValue(30)
    """At a URL, the longest that a request may take, with its retries."""
    spill_to: Annotated[
        Text | None, BeforeValidator(values.folder_path), such("~/.agent/waiting")
    ] = None
    """At a URL, the folder in which texts wait while the service is away; each session gets a
    folder in it. Default: none, so `on_failure` says what happens."""
    sync: Literal["always", "never"] = "always"
    """`always`: on stable storage before a placeholder names it."""
    on_failure: Literal["keep", "raise"] = "keep"
    """When a write fails: keep the original in the context and warn, or raise."""
    mode: Annotated[
        str,
        BeforeValidator(values.file_mode),
        Field(json_schema_extra={"pattern": f"^{values.MODE_PATTERN}$"}, examples=["0640"]),
    ] = "0600"
    """Permissions of the files, octal; folders get the matching x bits."""
    compress: Literal["none", "zstd"] = "zstd"
    """For what no live placeholder names."""
    retention: Annotated[Retention | None, such({"max_age": "30d", "max_bytes": "5GB"})] = None
    """How long files stay. Default: for ever."""

    @property
    def keeps_state(self) -> bool:
        """Whether a session remembers its decisions beside the files."""
        return self.state == "kept"
