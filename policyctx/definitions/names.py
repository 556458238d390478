"""Texts that the language fixes: wordings, summarizers, tools, URLs of stores, fields of texts."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

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
# How a result begins that is a message of the user, since its call has left the list.
RESULT_OF = "Result of the call "

EXTRACTIVE = "extractive"
# Leaves the policy's wording alone in place of the history.
NONE = "none"
# Those that ask a model.
MODEL_SUMMARIZERS = ("anthropic", "openai")
BUILT_IN_SUMMARIZERS = (EXTRACTIVE, NONE, *MODEL_SUMMARIZERS)

# Where schemas and the objects of SDKs have the name of a tool, if not in `name`.
_NAMED_IN = ("function", "custom", "toolSpec", "tool_spec", "metadata")
# The lists of tools within one: of Google's, of Bedrock's map, of a namespace of OpenAI's.
_TOOLS_IN = ("function_declarations", "functionDeclarations", "tools")

SCHEMES = ("s3", "gs", "az", "file")
# The scheme whose URLs name no bucket but a folder.
_FOLDER = "file"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(/.*)?", re.DOTALL)
# What a field shows: the item itself, its file, how to read the file, its content, an excerpt of
# its content, or the file that the agent read it from.
Source: TypeAlias = Literal["item", "file", "reading", "content", "excerpt", "origin"]


def names_of_tools(tools: Iterable[object]) -> Iterator[str]:
    """Yield the name by which a model calls each tool that has one.

    A tool is a schema in the form of any API, the object of an SDK, or what is called itself. Of
    one that holds several, the names of these are yielded too, but not of what these hold.
    """
    for tool in tools:
        yield from _names(tool)
        for held in (_part(tool, key) for key in _TOOLS_IN):
            for one in held if isinstance(held, list | tuple) else ():
                yield from _names(one)
        yield from _of_server(tool)


def _names(tool: object) -> list[str]:
    inner = (_part(tool, key) for key in _NAMED_IN)
    found = (_part(tool, "name"), *(_part(one, "name") for one in inner))
    if callable(tool):
        found = (*found, getattr(tool, "__name__", None))
    return [name for name in found if isinstance(name, str) and name][:1]


def _of_server(tool: object) -> Iterator[str]:
    """Yield what the schema of an MCP server names of its tools."""
    if not isinstance(tool, Mapping):
        return
    allowed, configs = tool.get("allowed_tools"), tool.get("configs")
    if isinstance(allowed, Mapping):
        allowed = allowed.get("tool_names")
    if isinstance(allowed, list | tuple):
        yield from (name for name in allowed if isinstance(name, str))
    for name, config in configs.items() if isinstance(configs, Mapping) else ():
        if isinstance(name, str) and not (
            isinstance(config, Mapping) and not config.get("enabled", True)
        ):
            yield name


def _part(tool: object, key: str) -> object:
    return tool.get(key) if isinstance(tool, Mapping) else getattr(tool, key, None)


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


@dataclass(frozen=True, slots=True)
class PlaceholderField:
    """One field of a placeholder: where its value comes from, and its least length in characters.

    `extent` says that the field shows nothing without the key of its name beside the text.
    """

    source: Source
    least_chars: int = 0
    extent: bool = False


FIELDS: dict[str, PlaceholderField] = {
    "item_id": PlaceholderField("item"),
    "item_type": PlaceholderField("item", least_chars=1),
    "tool_name": PlaceholderField("item"),
    "tool_use_id": PlaceholderField("item"),
    "session_id": PlaceholderField("item"),
    "path": PlaceholderField("file", least_chars=2),
    "relative_path": PlaceholderField("file", least_chars=3),
    "store_path": PlaceholderField("file", least_chars=1),
    "cwd_path": PlaceholderField("file", least_chars=1),
    "how_to_read": PlaceholderField("reading", least_chars=len(READ_AGAIN)),
    "tokens": PlaceholderField("content", least_chars=1),
    "chars": PlaceholderField("content", least_chars=1),
    "lines": PlaceholderField("content", least_chars=1),
    "sha256": PlaceholderField("content", least_chars=64),
    "head": PlaceholderField("excerpt", extent=True),
    "tail": PlaceholderField("excerpt", extent=True),
    "outline": PlaceholderField("excerpt", extent=True),
    "gap": PlaceholderField("excerpt"),
    "omitted_lines": PlaceholderField("excerpt", least_chars=1),
    "omitted_chars": PlaceholderField("excerpt", least_chars=1),
    "source_path": PlaceholderField("origin"),
    "source_first_line": PlaceholderField("origin", least_chars=1),
    "source_last_line": PlaceholderField("origin", least_chars=1),
}


def _of(*sources: Source) -> tuple[str, ...]:
    return tuple(name for name, field in FIELDS.items() if field.source in sources)


PLACEHOLDER_FIELDS = tuple(FIELDS)
FILE_FIELDS = _of("file")
# What nothing can be shown for where an item has no file.
SAVED_FIELDS = _of("file", "reading")
EXCERPT_FIELDS = frozenset(_of("excerpt"))
# What nothing can be shown for where the text has left the list already.
ORIGINAL_FIELDS = _of("content", "excerpt", "origin")
# What tells of a text itself: in the input of a call, of each string that is replaced. A hash is
# for the file, which holds the whole input.
TEXT_FIELDS = frozenset(_of("content", "excerpt")) - {"sha256"}
# Of a text between the head and the tail.
GAP_FIELDS = ("omitted_lines", "omitted_chars", "lines", "chars")
EXTENT_FIELDS = tuple(name for name, field in FIELDS.items() if field.extent)

PATH_FIELDS = (*_of("item"), "ext")
ROOT_FIELDS = ("session_id",)
SESSION_FIELDS = ("date", "time", "random")
SUMMARY_FIELDS = ("summary", "archive_path", "how_to_search")
PROMPT_FIELDS = ("sections", "rules", "max_words", "earlier_summary")
RESTORED_FIELDS = ("path", "content")
