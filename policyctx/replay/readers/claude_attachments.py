"""The texts of Claude Code's attachments, which the program adds to what the user says.

A record has the parts of such a text and not its wording, so the sentences around them are short
stand-ins. What has no text of its own, such as a reminder, is in no message.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from policyctx.replay.readers.fields import mapping, word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policyctx.replay.readers.fields import Record

# By type: the sentence before the text, which may name fields, and where the text is found.
_TEXTS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType({
    "agent_listing_delta": ("Agents on offer:", ("addedLines", "removedTypes")),
    "critical_system_reminder": ("", ("content",)),
    "deferred_tools_delta": ("Tools that can be loaded:", ("addedLines", "removedNames")),
    "directory": ("The folder {path} holds:", ("content",)),
    "edited_text_file": ("The file {filename} was changed by somebody else:", ("snippet",)),
    "file": ("The file {filename} holds:", ("content.file.content",)),
    "hook_additional_context": ("The hook {hookName} adds:", ("content",)),
    "hook_success": ("The hook {hookName} adds:", ("content",)),
    "invoked_skills": ("Skills in use:", ("skills.content",)),
    "mcp_instructions_delta": ("Instructions of MCP servers:", ("addedBlocks", "removedNames")),
    "nested_memory": ("The file {path} holds:", ("content.content",)),
    "plan_file_reference": ("The plan {planFilePath} says:", ("planContent",)),
    "queued_command": ("The user says:", ("prompt", "prompt.text")),
    "relevant_memories": ("From earlier sessions:", ("memories.content",)),
    "selected_lines_in_ide": ("Selected in {filename}:", ("content",)),
    "skill_listing": ("Skills on offer:", ("content",)),
})  # fmt: skip
# A hook's output is only shown to the model where it ran before a prompt.
_SHOWN_HOOKS = ("SessionStart", "UserPromptSubmit")


def text_of(record: Record) -> str:
    """Return what an attachment says to the model; empty where no text of it is recorded."""
    attachment = mapping(record.get("attachment"))
    kind = word(attachment.get("type"))
    if kind not in _TEXTS or (
        kind == "hook_success" and attachment.get("hookEvent") not in _SHOWN_HOOKS
    ):
        return ""
    before, places = _TEXTS[kind]
    found = [text for place in places for text in _at(attachment, place.split(".")) if text]
    if not found:
        return ""
    said = "\n".join([_filled(before, attachment), *found] if before else found)
    return f"<system-reminder>\n{said}\n</system-reminder>"


def is_of_user(record: Record) -> bool:
    """Whether the user wrote what an attachment says, while the model was replying."""
    return mapping(record.get("attachment")).get("type") == "queued_command"


def _at(value: object, keys: list[str]) -> Iterator[str]:
    """Yield the texts at a place, of each element where a list stands there."""
    if isinstance(value, list):
        for one in value:
            yield from _at(one, keys)
    elif keys:
        yield from _at(mapping(value).get(keys[0]), keys[1:])
    elif isinstance(value, str):
        yield value


def _filled(sentence: str, attachment: Record) -> str:
    start, brace, rest = sentence.partition("{")
    key, _, end = rest.partition("}")
    return f"{start}{word(attachment.get(key))}{end}" if brace else sentence
