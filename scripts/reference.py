"""The page `docs/policy-reference.md`: a section for each map, with a list of its keys."""

import re
from typing import Any

from policyctx.definitions.actions import Action
from policyctx.definitions.items import READ_TOOL
from policyctx.definitions.names import HOW_TO_READ, READ_AGAIN
from policyctx.policy.schema import (
    KEYS_OF_POLICY,
    PolicyKey,
    keys,
    maps_in,
    meaning_and_default,
    policy_schema,
    properties,
    required_keys,
    type_in_words,
)

TITLE = "# Policy reference"

INTRODUCTION = """\
A policy is one YAML file. Every key has a default but `apiVersion`, `name`, and a step's `name` and
`do`. One with a key of each kind:

    apiVersion: policyctx/v1
    name: example
    model: {context_window: 200000, tokenizer: o200k_base}  # what sizes are measured against
    items:  # each kind of item: which may leave, and from what size on
      tool_result: {offload: true, min_tokens: 500}
      web_page: {match: {type: tool_result, tool: "web_*"}, min_tokens: 2000}  # a type of your own
    tools:  # each tool, by name or glob
      Read: {reads_file: file_path}  # what it read last comes back after a summary
      todo_write: {pin: true}  # no step takes its calls and results
    placeholder: "[{tool_name}: {lines} lines, {tokens} tokens]\\nPath: {path}"  # what is left
    store: {root: "~/.agent/context/{session_id}", retention: {max_age: 30d}}  # the files
    compaction: {keep_recent: {messages: 4}, archive: true}  # how history is summarised
    steps:  # the pipeline, before each model call
      - name: retire-old-results
        do: offload  # save the text, leave the placeholder
        when: {tokens: {at_least: 60%}}  # only when this much of the window is full
        select: {types: [tool_result], keep_recent: {items: 3, per: all}}
      - name: summarise
        do: compact
        when: {tokens: {at_least: 80%}}

The brackets have the type of a key and its default or `required`, as `policyctx schema KEY` does.
Errors have a [code](diagnostics.md). An editor checks a policy whose first line names the file that
`policyctx schema` prints:

    # yaml-language-server: $schema=./policy.schema.json

## How a policy is read

YAML is read strictly: only `true` and `false` are booleans; `on`, `no`, `1:30`, `1_000` and dates
are strings; anchors, aliases, tags, merge keys, duplicate and unknown keys are refused; at most 32
levels and 64 KiB.

A share such as `10%` is of what its key names. Durations are written `90s`, `5m`, `3h`, `30d`;
sizes `512KiB`, `5GB`. `${NAME}` or `${NAME:-default}` may be the whole of a value, read from the
environment and typed like a value in the file; an empty variable counts as unset. Errors, warnings
and `policyctx show` print the expression, never the value, which appears where it takes effect,
such as in the paths of files.

In a condition a map means *all*, a list of maps means *any*.

`extends` names presets, fragments and files; a path is relative to the file that names it, and
stays inside the [project](diagnostics.md#pc207-a-file-outside-of-the-project). A fragment ships
with the library, such as `file-readers`: the tools by which known agents read files. Maps merge by
key. `steps` merge by `name`: a known one is replaced in place, a new one goes to the end (before an
inherited `compact`), or before the step that its `before` names; `remove: true` takes one out.
`match`, `when`, `select`, `keep_recent`, `placeholder` and the pair of `min_tokens` and `min_chars`
are replaced whole. Item types and tools of the nearer file are tried first."""


NOTES = {
    "Model": """\
The text of a list of blocks is the texts of the blocks, joined by a newline; a block without a text
is a line of compact JSON. With `store.blocks: json` the characters of every list are those of its
JSON. In tokens an image counts by its size in pixels and a document by its pages; in characters a
list with one counts as its JSON.

Thresholds and `keep_recent` measure items without `tokenizer.per_message`. Code gives other
counters: `policyctx.register_tokenizer`, or `Session(counter=…)` for one session.""",
    "ItemRule": """\
Each key is looked up on its own, and the nearest wins: the step's `select`, the tool (the exact
name, then globs in the order written), the item type, the types that it refines, a hint from code
(`Session(hints={"browser": {"keep_recent": 3}})`), the top level. Without any, `offload` is
`false`, `min_tokens` is 0, nothing is pinned, and only what is `recalled` is recent.

A type of your own is selected where the built-in one is named. Yours are tried in the order
written.

`recalled` is a result of `read_offloaded` or `search_offloaded`, or of a call that names a file of
the store. Its own `keep_recent` is 3, and no step takes it on arrival.

Never taken: the system prompt, a compaction's summary, blocks of an unknown kind, the newest user
message, and a call without an answer with all after it, unless a later assistant message shows that
the agent went on. Thinking can only be dropped, that of the current turn only as an item of the
Responses API with the call it led to.

Of a call that is offloaded or cleared, the placeholder replaces each longer string of the input. An
image or document becomes a text block with the placeholder.""",
    "KeepRecent": """\
A number alone means items. The step's candidates that get `keep_recent` from the same key are
counted together, by `per`; an item without a tool is counted with its type. Small and already
offloaded ones count; parallel calls stay together, so more may stay. In a step with `ephemeral:
true`, or with `batches: split`, each is emptied when it is old itself; `drop` and `compact` never
split a batch.

For `tokens` and `max_tokens` each item has its original size; with `max_tokens` `compact` keeps the
newest message however large it is.""",
    "Placeholder": """\
A string alone is the `text`. Its fields: `{path}` (absolute), `{relative_path}` (from the
store's root), `{store_path}` (the same without `./`), `{cwd_path}` (from the working directory in
which the session was made; absolute for a file outside of it), `{how_to_read}`, `{item_id}`,
`{item_type}`, `{tool_name}`, `{tool_use_id}`, `{session_id}`, `{tokens}`, `{chars}`, `{lines}`,
`{sha256}`, `{head}`, `{outline}`, `{gap}`, `{tail}`, `{omitted_lines}`, `{omitted_chars}`,
`{source_path}`, `{source_first_line}`, `{source_last_line}`. `{{` and `}}` are literal. Nothing
else is evaluated.

"""
    f"""\
`{{how_to_read}}` is `{HOW_TO_READ.format(tool=READ_TOOL)}` if the session knows the tool, with or
without a prefix, by `apply(tools=…)`, the policy's `tools` or `ReadBackTools(session)`, else
`{READ_AGAIN}`

The wording of `clear` has no `{{path}}`, `{{relative_path}}`, `{{store_path}}`, `{{cwd_path}}` or
`{{how_to_read}}`. By default it is `{Action.CLEAR.text}`.

"""
    """\
A line ends with a newline, which a carriage return may precede. `head` and `tail` measure the text
itself, without numbers of lines and marks. The tail is taken from what the head leaves.

`{gap}` is the text of `gap` where something is left out between head and tail, or after a head
without a tail; else it is what makes `{head}{gap}{tail}` the whole text.

Each row of `{outline}` begins with its line in the text, within a long line with `LINE:CHARACTER`.
No model is asked.

Where a string in the input of a call is replaced, these fields describe that string: `{head}`,
`{tail}`, `{outline}`, `{tokens}`, `{chars}`, `{lines}`, `{omitted_lines}`, `{omitted_chars}`.
`{sha256}` is that of the whole input, as the file holds it.

`{omitted_lines}` counts the lines of which nothing is shown, `{omitted_chars}` all characters not
shown.

`{source_path}` is the absolute path of the file that the agent read, if the host reports it,
`{source_first_line}` and `{source_last_line}` the lines that were read; else of the item's own
file.

    placeholder:
      text: |-
        [{tool_name}: {lines} lines in {path}]
        {head}{gap}{tail}
      gap: "\\n[… {omitted_lines} lines …]\\n"
      head: {lines: 20}
      tail: {lines: 5}
      max_line_chars: 200""",
    "Store": """\
A relative root is below the working directory; code and `--root` replace it whole. The fields of
`session_id` are `{date}` and `{time}` (UTC) and `{random}`; those of `path` are `{item_id}`,
`{item_type}`, `{tool_name}`, `{tool_use_id}`, `{session_id}` and `{ext}`.

A part of a path that is empty or over 120 bytes is named by its hash. No id or tool name leads out
of the root.""",
    "Step": """\
A step sees the list as the steps before it have left it. What was offloaded once keeps its
placeholder. A step `on: arrival` sees one item at a time, and has no gates, no `keep_recent`,
`order`, `until`, `ephemeral` or `unit`.

`drop` takes what is kept and what a placeholder stands for. A result and its call go together;
parallel calls beside them stay. An item stays if its removal would leave an assistant message first
or last, or only thinking in a message, or take a pinned item along. `drop` has no `must_shrink`.

What is selected takes its `unit` along; a call and its result, with their units, leave together.
The unit stays where anything in it is recent by the step's `keep_recent`, pinned, protected,
excepted by `except_tools`, or a failed result under `errors: false`. `frees` and `ratio` count only
what is selected.""",
    "Select": """\
In this order: `types` and `tools` make the candidates; `keep_recent` counts among them and
keeps the newest; `except_tools`, `errors: false`, pins, `offload: false`, thresholds and
`must_shrink` take away. A threshold binds `offload` and `clear`, and `drop` only where its own
`select` gives it.

`largest` measures in the unit of this `select`'s threshold, else of the policy's, else in tokens.
`by_type` needs `types`; what only `"*"` names goes last.

`with_input` does not change a call that is pinned or has `offload: false`; `offload` saves
the input first.""",
    "Until": """\
`tokens` are those that the gate of this name compares; `frees` are net of placeholders.""",
    "Gates": """\
A share of the window is not rounded.

`ratio` is closed when nothing is selected, `idle` before the first model call.

`since_last` counts what came behind the message with which the list ended when the step last took
something; without such a message, as after a compaction, everything counts. It holds after a
restart, but not with `store.state: none`.

`failed` stays closed if nothing is new to summarise, if the caller's hook declined, and in a
compaction on demand. `plan` and a replay make no summary that fails, so there it opens only where
no summary would help.

`pays_back` is

    rewritten * (cache_write - cache_read) / (freed * cache_read)

rounded up. A share is of the model calls so far: with `at_most: 25%`, an edit after 40 calls must
have paid for itself after 10 more. The prices are those of `model.price`, else of the called model;
without prices a write costs 1.25 of the input, for an hour 2, and a read 0.1. `rewritten` are the
tokens that were sent before, from the first changed message on, less those `freed`. It is 0 before
the first call, after more than `model.cache.ttl`, or with less sent than `model.cache.min_tokens`.
When nothing would be freed, the gate is closed.""",
}


def reference() -> str:
    """Return `docs/policy-reference.md`: a section per map, each with a list of its keys."""
    schema = policy_schema()
    headings = _headings(schema)
    links = {
        name: f"[map](#{_anchor(headings[name])})" if name in headings else "map"
        for name in schema["$defs"]
    }
    parts = [TITLE, INTRODUCTION]
    said: dict[tuple[str, str], tuple[str, str, str]] = {}
    for map_name, heading in headings.items():
        parts += _section(schema, map_name, heading, links, said)
    return "\n\n".join(parts) + "\n"


def _headings(schema: dict[str, Any]) -> dict[str, str]:
    """The maps of the language in the order of the page, each with its section's heading.

    A map of one key has no section: its key is listed below the key that holds the map.
    """
    places: dict[str, list[PolicyKey]] = {}
    for key in keys(schema):
        for map_name, _ in maps_in(key.schema):
            if len(properties(schema, map_name)) > 1:
                places.setdefault(map_name, []).append(key)
    top = [key.name for key in keys(schema) if key.map_name == KEYS_OF_POLICY]
    found = {name: _paths_in_words([key.dotted for key in same]) for name, same in places.items()}

    def rank(map_name: str) -> int:
        own = re.split(r"[.,]", found[map_name])[0]
        return top.index(own if own in top else places[map_name][0].dotted.split(".")[0])

    return {KEYS_OF_POLICY: "The policy"} | {name: found[name] for name in sorted(found, key=rank)}


def _paths_in_words(paths: list[str]) -> str:
    """Where a map stands: of paths to keys of one name, the end that they share."""
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rsplit(".", 1)[-1], []).append(path)
    return ", ".join(_shared_end(same) for same in by_name.values())


def _shared_end(paths: list[str]) -> str:
    backwards = [path.split(".")[::-1] for path in paths]
    shared: list[str] = []
    for parts in zip(*backwards, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(reversed(shared))


def _section(
    schema: dict[str, Any],
    map_name: str,
    heading: str,
    links: dict[str, str],
    said: dict[tuple[str, str], tuple[str, str, str]],
) -> list[str]:
    """The section of a map; `said` has the section in which a key of a meaning stands first."""
    is_top = map_name == KEYS_OF_POLICY
    owner = schema if is_top else schema["$defs"][map_name]
    names_of: dict[tuple[str, str, str], list[str]] = {}
    for name in owner["properties"]:
        about = type_, default, meaning = _about(schema, map_name, name, links)
        # The heading of the top alone is translated, and its anchor with it.
        if not is_top:
            first, usual, written = said.setdefault((name, meaning), (heading, default, type_))
            if first != heading:
                differs = "" if default == usual else default
                other = "" if type_ == written else type_
                about = (other, differs, f"as in [{first}](#{_anchor(first)})")
        names_of.setdefault(about, []).append(name)
    lines: list[str] = []
    for about, names in names_of.items():
        lines.append(_line(names, about))
        for inner, _ in maps_in(owner["properties"][names[0]]):
            if links[inner] == "map" and about[0]:
                [below] = properties(schema, inner)
                lines.append("    " + _line([below], _about(schema, inner, below, links)))
    depth = "##" if is_top or "." not in heading else "###"
    described = owner["description"]
    meanings = {key.schema["description"] for key in keys(schema) if _holds(key, map_name)}
    # A description of one clause says what the line of the key says that holds the map.
    says_more = described not in meanings and re.search(r"[;,]|\. ", described)
    parts = [f"{depth} {heading}", *([described] if says_more else [])]
    parts.append("\n".join(lines))
    if map_name == "ItemRule":
        parts.append(_item_types(schema))
    return [*parts, NOTES[map_name]] if map_name in NOTES else parts


def _holds(key: PolicyKey, map_name: str) -> bool:
    return any(inner == map_name for inner, _ in maps_in(key.schema))


def _about(
    schema: dict[str, Any], map_name: str, name: str, links: dict[str, str]
) -> tuple[str, str, str]:
    """The type, the default and the meaning of a key."""
    part = properties(schema, map_name)[name]
    meaning, default = meaning_and_default(part)
    default = "required" if name in required_keys(schema, map_name) else default
    # How a share, a duration and a boolean are written is said once, at the top of the page.
    words = re.sub(r" such as [\w%]+", "", type_in_words(part, links))
    return words.replace("`true` or `false`", "boolean"), default, meaning


def _line(names: list[str], about: tuple[str, str, str]) -> str:
    *typed, meaning = about
    of = "; ".join(filter(None, typed))
    return f"- {', '.join(f'`{name}`' for name in names)}{of and f' ({of})'}: {meaning}"


def _item_types(schema: dict[str, Any]) -> str:
    rows = ["| built-in type | is |", "|---|---|"]
    for name, part in schema["properties"]["items"]["properties"].items():
        rows.append(f"| `{name}` | {part['description']} |")
    return "\n".join(rows)


def _anchor(heading: str) -> str:
    """Return the anchor that Markdown renderers give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
