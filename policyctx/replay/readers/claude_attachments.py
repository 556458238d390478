"""What the attachments in a session of Claude Code say to the model.

They hold the texts that the program adds to a prompt. A record has the parts of such a text but not
its wording, so short sentences stand in for it; an attachment without a text, such as a reminder,
adds nothing.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from policyctx.replay.readers.values import Record, mapping, word

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
    "queued_command": ("", ("prompt", "prompt.text")),
    "relevant_memories": ("From earlier sessions:", ("memories.content",)),
    "selected_lines_in_ide": ("Selected in {filename}:", ("content",)),
    "skill_listing": ("Skills on offer:", ("content",)),
})  # fmt: skip
# A hook's output is only shown to the model where it ran before a prompt.
_SHOWN_HOOKS = ("SessionStart", "UserPromptSubmit")


def as_text(record: Record) -> str:
    """Return what an attachment says to the model; empty where no text of it is recorded.

    What the program adds is in an element of its own, and what the user wrote is not.
    """
    attachment = mapping(record.get("attachment"))
    kind = word(attachment.get("type"))
    is_hidden = kind == "hook_success" and attachment.get("hookEvent") not in _SHOWN_HOOKS
    if kind not in _TEXTS or is_hidden:
        return ""
    before, places = _TEXTS[kind]
    found = [text for place in places for text in _at(attachment, place.split(".")) if text]
    if not found:
        return ""
    said = "\n".join([_filled(before, attachment), *found] if before else found)
    return said if is_of_user(record) else f"<system-reminder>\n{said}\n</system-reminder>"


def is_of_user(record: Record) -> bool:
    """Whether the user wrote what an attachment says, while the model was replying."""
    return mapping(record.get("attachment")).get("type") == "queued_command"


def _at(value: object, keys: list[str]) -> Iterator[str]:
    """Yield the texts at a place, of each element where a list is there."""
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
