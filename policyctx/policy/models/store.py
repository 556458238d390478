"""Where offloaded content goes, and how it is written."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from policyctx.definitions.fields import SESSION_FIELDS
from policyctx.policy.derived import OfStore
from policyctx.policy.models.base import ByteSize, Duration, Section
from policyctx.policy.values import (
    MODE_PATTERN,
    file_mode,
    folder_path,
    path_template,
    store_root,
    template_of,
)
from policyctx.policy.values import Duration as DurationValue

Escape: TypeAlias = Literal["percent", "_"]


class Retention(Section):
    """How long files stay; what a live placeholder names always does."""

    at_least_one: ClassVar = ("max_age", "max_bytes", "max_contents")

    max_age: Annotated[Duration | None, Field(examples=["30d"])] = None
    """Files older than this go."""
    max_bytes: Annotated[ByteSize | None, Field(examples=["5GB"])] = None
    """The oldest go until the store is this small."""
    max_contents: Annotated[int | None, Field(ge=0, examples=[10_000])] = None
    """The oldest go until the store holds this many texts."""


class Store(Section, OfStore):
    """The files of a session."""

    root: Annotated[
        str,
        BeforeValidator(store_root),
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
    session_id: Annotated[str, BeforeValidator(template_of(SESSION_FIELDS))] = (
        "session_{date}_{time}_{random}"
    )
    """The form of a new session's id."""
    path: Annotated[
        str, BeforeValidator(path_template), Field(examples=["{tool_name}/{tool_use_id}.md"])
    ] = "{item_type}/{tool_name}/{item_id}.{ext}"
    """A file's path below the root."""
    escape: Escape = "percent"
    """What becomes of a sign of an id or a name that is not `A-Z a-z 0-9 . _ -`: `percent` encodes
    its bytes, so that no two ids share a name; `_` puts that sign in its place, and `on_conflict`
    decides where two ids have one name then."""
    format: Literal["text", "envelope"] = "text"
    """`text`: the item's text, bytes as they are. `envelope`: a JSON document around it."""
    blocks: Literal["text", "json"] = "text"
    """What the text of a result is that is a list of blocks. `text`: the texts of the blocks,
    joined by a newline. `json`: the whole list, as `JSON.stringify` writes it."""
    on_conflict: Literal["suffix", "overwrite", "error"] = "suffix"
    """When another item has the name: append `-1`, `-2`, …; overwrite it; or raise."""
    state: Literal["kept", "none"] = "kept"
    """`kept`: index, journal and ledger beside the files. `none`: content files only,
    each call stands alone."""
    timeout: Annotated[Duration, Field(examples=["10s"])] = DurationValue(30)
    """At a URL, the longest that a request may take, with its retries."""
    spill_to: Annotated[
        str | None,
        BeforeValidator(folder_path),
        Field(min_length=1, examples=["~/.agent/waiting"]),
    ] = None
    """At a URL, the folder in which texts wait while the service is away, to be uploaded later;
    each session gets a folder in it. Default: none, so `on_failure` says what happens."""
    sync: Literal["always", "never"] = "always"
    """`always`: on stable storage before a placeholder names it."""
    on_failure: Literal["keep", "raise"] = "keep"
    """When a write fails: keep the original in the context and warn, or raise."""
    mode: Annotated[
        str,
        BeforeValidator(file_mode),
        Field(json_schema_extra={"pattern": f"^{MODE_PATTERN}$"}, examples=["0640"]),
    ] = "0600"
    """Permissions of the files, octal; folders get the matching x bits."""
    compress: Literal["none", "zstd"] = "zstd"
    """For what no live placeholder names."""
    retention: Annotated[
        Retention | None, Field(examples=[{"max_age": "30d", "max_bytes": "5GB"}])
    ] = None
    """How long files stay. Default: for ever."""
