"""The codes of diagnostics: stable names, each with a title and a paragraph for people."""

from __future__ import annotations

from policyctx.policy.finding_codes import FINDINGS, Code

ERRORS: dict[str, Code] = {
    "PC001": Code(
        "no such policy, or an unreadable file",
        """\
What you named is neither a preset nor a file, or the file cannot be opened, is larger than 64
KiB, or is not UTF-8. A policy is a small text; a file that is not one is refused before it is
parsed. Name a preset, or give a path that exists. A file named like a preset needs a path with
a separator:

    policyctx plan coding-agent messages.json    # the preset
    policyctx plan ./coding-agent messages.json  # the file""",
    ),
    "PC002": Code(
        "not YAML",
        """\
The text breaks the syntax of YAML, holds a character that YAML does not allow, or has more than
one document. The place is where the parser gave up; the mistake is often a line above: a
bracket or a quote that was not closed, a tab, a missing space after a colon. Mend the syntax:

    items: {tool_result: {offload: true}   # wrong: a brace is missing
    items: {tool_result: {offload: true}}""",
    ),
    "PC003": Code(
        "a part of YAML that a policy does not have",
        """\
Anchors (`&x`), aliases (`*x`), tags (`!x`) and merge keys (`<<`) are refused: they let a small
file grow without bound, and hide what a line says. Write the value where it is needed, share it
with `extends`, and quote a text that begins with one of these signs:

    placeholder: !gone to {path}       # wrong: `!` begins a tag
    placeholder: "!gone to {path}\"""",
    ),
    "PC004": Code(
        "a key stands twice",
        """\
A map has the same key two times. YAML readers differ in which of them wins, so none does. Keep
one, or join the two:

    tools: {Bash: {pin: true}, Bash: {offload: false}}   # wrong
    tools: {Bash: {pin: true, offload: false}}""",
    ),
    "PC005": Code(
        "a key is no string",
        """\
All keys of a policy are strings. A key that YAML reads as a number, as true or false, as
nothing, as a list or as a map is refused. Quote it where it is a name:

    tools: {404: {pin: true}}     # wrong: a number
    tools: {"404": {pin: true}}""",
    ),
    "PC006": Code(
        "nested too deep",
        """\
Lists and maps stand in one another more than 32 levels deep. No key of the language needs more
than a few, so this is a slip of brackets or a file that is no policy. Take the brackets away:

    extends: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[coding-agent]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]  # wrong
    extends: [coding-agent]""",
    ),
    "PC101": Code(
        "unknown key",
        """\
The language has no key of this name at this place. An unknown key would be a wish that nobody
hears, so it is refused; the nearest known key is named. Some keys are only misplaced: then the
message says in which map the key belongs. `policyctx schema KEY` lists all places of a key.

    store: {on_conflit: suffix}     # wrong: a letter is missing
    store: {on_conflict: suffix}""",
    ),
    "PC102": Code(
        "a key is missing",
        """\
A map lacks a key that it cannot do without, or has none of several of which it needs one. There
is no default that would be right, so you have to say it:

    steps: [{name: retire}]               # wrong: do what?
    steps: [{name: retire, do: offload}]""",
    ),
    "PC103": Code(
        "a value of the wrong type",
        """\
A number is given where a map is expected, a text where a number is, and so on. Values are never
converted: `yes`, `on` and `no` are texts, and so are `8k` and everything in quotes. Write the type
that the message names; where it shows an example, that is a value which the key accepts:

    items: {tool_result: {offload: yes}}    # wrong: a text
    items: {tool_result: {offload: true}}""",
    ),
    "PC104": Code(
        "not one of the words",
        """\
The key takes one of a few words, and this is none of them. The message lists the words and
names the nearest. Where the words are item types, those that the policy defines itself are
among them.

    steps: [{name: retire, do: ofload}]    # wrong
    steps: [{name: retire, do: offload}]""",
    ),
    "PC105": Code(
        "out of bounds",
        """\
A number is too small or too large, or a text is empty or too long. The message says what is
allowed:

    model: {context_window: 0}        # wrong: nothing would fit
    model: {context_window: 200000}""",
    ),
    "PC106": Code(
        "not of the form expected",
        """\
The value has a form of its own, and this is not it: a share such as `10%`, a duration such as
`5m`, a size such as `5GB`, a quoted octal mode, a path below the root, a name of certain
letters. Nothing is guessed from a number without its unit. Write it in the form that the
message shows. If the value comes from an environment variable, the message shows the expression,
such as `${MODE}`, and not the value, which may be a secret:

    store: {mode: 0600}      # wrong: a number, and not even octal
    store: {mode: "0600"}""",
    ),
    "PC107": Code(
        "keys that do not go together",
        """\
Each key alone is right, and together they contradict one another: two thresholds in one map,
two steps of one name, a key that its step's `do` or `on` has no use for. One of them would have
to be ignored, so neither is. Take one away:

    tools: {Bash: {min_tokens: 500, min_chars: 2000}}   # wrong: which one?
    tools: {Bash: {min_tokens: 500}}

A wording with `{head}` or `{tail}` is told so too when no key beside it says how much to show,
and one with `{path}` when a `clear` step would leave it: nothing is saved there.""",
    ),
    "PC109": Code(
        "a text with a wrong field",
        """\
In a placeholder, a path or another text with fields, braces enclose a field's name, and this
one has an unknown field or a brace that stands alone. Nothing else is evaluated. Every wrong
field of the text is reported. Use a field that the message lists, and write a literal brace twice:

    placeholder: "{file} {left out}"      # wrong: no such fields
    placeholder: "{path} {{left out}}\"""",
    ),
    "PC110": Code(
        "a variable without a value",
        """\
`${NAME}` is the whole of a value, and the environment variable NAME is unset or empty and the
policy gives no default, or its value is itself such an expression. A policy never runs with a
value missing. Set the variable, or give a default:

    model: {context_window: "${WINDOW}"}             # wrong where WINDOW is not set
    model: {context_window: "${WINDOW:-200000}"}""",
    ),
    "PC111": Code(
        "unknown item type",
        """\
A name under `items` is no built-in type, and has no `match` that would make it a type of yours.
Mend the name, or say which built-in type yours refines:

    items: {web_page: {min_tokens: 800}}   # wrong: what is a web_page?
    items: {web_page: {match: {type: tool_result, tool: "web_*"}, min_tokens: 800}}""",
    ),
    "PC201": Code(
        "nothing there to extend",
        """\
A policy named in `extends` is neither a preset nor a file. A relative path is looked for beside
the file that names it, not in the working directory. Mend the name or the path:

    extends: [coding-agnet]                # wrong
    extends: [coding-agent, ./team.yaml]""",
    ),
    "PC202": Code(
        "a policy that extends itself",
        """\
Following `extends` leads back to a file that is being read. The message prints the chain. Take
one of its links out; what two policies share goes into a third that both extend:

    extends: [./a.yaml]      # wrong in a.yaml
    extends: [./base.yaml]""",
    ),
    "PC203": Code(
        "too many policies in a chain",
        """\
More than 8 policies extend one another in a row. Nobody could say any more where a value comes
from. Extend several at once, in one list, in place of one after the other:

    extends: [./h.yaml]                          # which extends g, which extends f, …
    extends: [./f.yaml, ./g.yaml, ./h.yaml]      # each extending nothing""",
    ),
    "PC204": Code(
        "no step of that name",
        """\
`remove: true` or `before:` names a step that the extended policies do not have, so it would do
nothing. Mend the name; `policyctx show` lists the steps:

    steps: [{name: retire, remove: true}]    # wrong: coding-agent has no such step
    steps: [{name: retire-old-results, remove: true}]""",
    ),
    "PC205": Code(
        "no file that names the agents",
        """\
A policy is asked for by an agent's name, and there is no `policyctx.yaml` in the folder or in any
above it, or the folder itself is not there. Write one, beside the agents' code or at the top of
the project; `policyctx init` writes one to begin with:

    apiVersion: policyctx/v1
    agents: {coder: coding-agent, "*": context-offload}""",
    ),
    "PC206": Code(
        "no entry for an agent",
        """\
No name and no glob in `policyctx.yaml` fits the agent, and no agent runs without a policy by
accident. Mend the name, or add an entry; `"*"` is for all agents that no other entry fits:

    agents: {coder: coding-agent}                          # `reviewer` has none
    agents: {coder: coding-agent, "*": context-offload}""",
    ),
}
CODES = {**ERRORS, **FINDINGS}

_INTRODUCTION = """\
# What a policy is told

Every mistake in a policy has a code that stays the same from version to version. Errors stop
the policy from being read. Warnings come from `policyctx check`; `--strict` makes them errors.
"""


def code_pages() -> str:
    """Return `docs/diagnostics.md`: a section on every code, in order."""
    parts = [_INTRODUCTION, *_sections("Errors", ERRORS)]
    if FINDINGS:
        parts += _sections("Warnings", FINDINGS)
    return "\n".join(parts)


def _sections(heading: str, codes: dict[str, Code]) -> list[str]:
    found = [f"## {heading}\n"]
    for code, (title, paragraph) in sorted(codes.items()):
        found.append(f"### {code}: {title}\n\n{paragraph.strip()}\n")
    return found
