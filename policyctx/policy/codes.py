"""The codes of diagnostics: stable names, each with a title and a paragraph for people."""

from typing import NamedTuple


class Code(NamedTuple):
    """What a code stands for: a title of a few words, and a paragraph in Markdown."""

    title: str
    paragraph: str


FINDINGS: dict[str, Code] = {
    "PC301": Code(
        "a step that can never fire",
        "Whatever the messages, the step takes nothing: it selects no item type, every type that "
        "it selects is pinned, may not be taken, or lacks `offload: true`, no tool is left after "
        "`except_tools`, or a step before it, without a gate, has always taken the same items. "
        "Give the type `offload: true`, select what can be taken, change the order of the steps, "
        "or remove the step.",
    ),
    "PC302": Code(
        "an item type that an earlier one always catches",
        "Types of your own are tried in the order written, and the first that matches wins. All "
        "that this one matches is matched by one before it, so no item ever gets this type and "
        "its keys do nothing. Write the narrower type first, or narrow the match of the earlier "
        "one.",
    ),
    "PC303": Code(
        "a threshold below the size of the placeholder",
        "An item of this size is selected, but its placeholder is at least as long, so "
        "`must_shrink` leaves it alone: the threshold is not the one that counts. The size given "
        "is a lower bound from the wording's fixed text and the fewest characters of its fields. "
        "Raise the threshold, shorten the placeholder, or set `must_shrink: false` on the step. "
        "A threshold of 0 says that there is none and is never warned of.",
    ),
    "PC304": Code(
        "a compaction that would run again at once",
        "The tail that stays and the files that come back may together be as many tokens as open "
        "the gate of `compact`, without a word of the summary: after the compaction the list is "
        "still too long, and the next one has little left to summarise. Raise the gate, or lower "
        "`compaction.keep_recent.tokens`, `restore.max_files`, `restore.max_tokens_per_file` or "
        "`restore.max_tokens_total`.",
    ),
    "PC305": Code(
        "`until` not below `when`",
        "When the gate opens at its lowest, `until` holds already, so the step has nothing to do "
        "there: the gate opens and the list stays as it is. Set `until` to no more than the "
        "number from which the gate opens. An `until` that waits for 0 tokens to be freed holds "
        "at once too.",
    ),
    "PC306": Code(
        "a `clear` of what no tool could fetch again",
        "`clear` saves nothing. That is fine for the result of a tool, since the call can be made "
        "again. What a user or the assistant said is gone from the session for good. Use "
        "`do: offload`, which saves it first, or take the type out of the selection.",
    ),
    "PC307": Code(
        "restoration from no tool",
        "The policy says how files come back after a compaction, but no tool has the key "
        "for one of `restore.sources` (`reads_file`, `edits_file`, `writes_file`), so no file ever "
        "comes back. Name the tools that work on files, such as `read_file: {reads_file: path}`, "
        "or set `restore.max_files` to 0.",
    ),
    "PC308": Code(
        "a gate that can never open",
        "No number passes the comparison: its bounds exclude one another, it asks for less than "
        "nothing, for more than the whole, for more tokens than the model can see, for items of "
        "no type, or for a ratio of 0, where the gate is closed since nothing is selected. The "
        "gate stays closed, and where there is no other gate in a list the step never runs. "
        "Change the numbers, or remove the gate.",
    ),
    "PC309": Code(
        "two tool globs that disagree",
        "Some tool names match both globs, neither of which is a plain name, and the two give a "
        "key different values. Only the order in which they are written decides. That is as it "
        "should be when the first glob is a special case of the second; here it is not. Write "
        "the narrower glob first, name the tools that both match, or give both one value. "
        "`offload` is not compared: `false` wins wherever it stands.",
    ),
    "PC310": Code(
        "a `keep_recent` that no step uses",
        "`keep_recent` holds in steps before a model call that select the type or tool, unless "
        "the step has a `keep_recent` of its own. There is no such step, so the key does "
        "nothing. Select the type or tool in a step, remove the step's own `keep_recent`, or "
        "remove this one.",
    ),
    "PC311": Code(
        "different items in one file",
        "The path has no field that tells one item from another, and `on_conflict: overwrite` "
        "lets each new file replace the one before it, while placeholders still point there. Put "
        "`{item_id}` into the path (`{tool_use_id}` is enough for results of tools only), or use "
        "`on_conflict: suffix`. A call and its result have one id: where both are saved, as by "
        "`drop` and `with_input`, the path needs `{item_type}` as well. With `escape: _` two ids "
        "such as `a/b` and `a_b` have one name; use `escape: percent`, or `on_conflict: suffix`.",
    ),
    "PC312": Code(
        "`offload: true` on what is never offloaded",
        "The system prompt, a summary and thinking are never offloaded or cleared, so the key does "
        "nothing. Remove it. What is old of thinking can be dropped.",
    ),
    "PC313": Code(
        "an item type that is never used",
        "No step selects the type, no gate counts it, and it keeps no items from a later type, so "
        "the policy does the same without it. Name it in the `types` of a step, or remove it.",
    ),
    "PC314": Code(
        "an exception that excepts nothing",
        "A glob of `except_tools` matches no tool that the `tools` of the same selection match, or "
        "the selection has no type with such a tool, so it takes nothing away. It is most likely "
        "misspelt. Mend the glob, or remove it.",
    ),
    "PC315": Code(
        "nothing to do",
        "A type or a tool has `offload: true`, but there are no `steps`, and only a step takes "
        "anything. Add one, or extend a policy that has one.",
    ),
    "PC316": Code(
        "an excerpt that the wording does not show",
        "The placeholder says how much to show of the beginning or the end of an item, or how to "
        "show it, but its text has no field for that: `head` needs `{head}`, `tail` needs "
        "`{tail}`, `gap` needs `{gap}`, and `max_line_chars`, `cut_mark` and `line_numbers` need "
        "`{head}` or `{tail}`; `cut_mark` also needs `max_line_chars`. Without it the key does "
        "nothing. Put the field into the text, or remove the key.",
    ),
    "PC317": Code(
        "an `until` that can never hold",
        "No list has fewer than 0 tokens, and none frees more than the model can see. The step "
        "takes all that it selects, as without `until`. Change the number, or remove it.",
    ),
    "PC318": Code(
        "an `order` that makes no difference",
        "Without `until` a step takes all that it selects, in whatever order. `by_type` needs at "
        "least two types to put in order, and a type that stands after one that it refines goes "
        "with that one. Add `until`, name the types in the order meant, the narrower before the "
        "wider, or remove `order`.",
    ),
    "PC319": Code(
        "a `per` or `of` where nothing is counted apart",
        "`per` says among whom items or tokens are counted: each tool, each type, or all. The "
        "newest messages and turns are those of the whole list, so `per` beside them does "
        "nothing, unless `of: candidates` counts only turns with a candidate. `of` is for `turns` "
        "alone. Remove the key, or count `items` or `tokens`.",
    ),
    "PC320": Code(
        "a `with_input` without a result",
        "The input of a call goes with its result. The step takes no result, or none of a tool "
        "that the glob matches, so no input goes. Select the results, mend the glob, or remove "
        "the key.",
    ),
    "PC322": Code(
        "a number where a share was likely meant",
        "`tokens: {at_least: 80}` means 80 tokens, which any list has; `80%` is a share of the "
        "context window. A number from 2 to 100 that is less than 1 % of `model.context_window` is "
        "reported in a `tokens` gate, in `until.tokens`, in `keep_recent.tokens` and in "
        "`summary.max_input`. Write the percent sign, or a larger number.",
    ),
    "PC323": Code(
        "a threshold as large as the context window",
        "The rule or step takes only items of at least this size. An item as large as "
        "`model.context_window` leaves no room for other messages, so almost no item is taken. "
        "Lower the threshold, or correct `model.context_window`. To take no item, write "
        "`offload: false`. A threshold in characters is checked only with the tokenizer "
        "`approximate`, which has a fixed number of characters for a token.",
    ),
    "PC324": Code(
        "a `keep_recent` as large as the context window",
        "The newest items of so many tokens stay, and all items that fit the context window have "
        "fewer: everything counts as recent, and nothing is taken or summarised. Use a smaller "
        "number, such as `10%`, or correct `model.context_window`.",
    ),
    "PC325": Code(
        "an `offload: true` that another rule overrules",
        "Another rule overrides this `offload: true` for every tool that the glob matches, so it "
        "has no effect. `offload: false` overrides `offload: true` in all rules that match the "
        "tool, also in a narrower glob or an exact name, and in any order. `pin` is read from one "
        "rule: the exact name, else the first glob that matches and has a `pin`; no step takes a "
        "pinned item. Remove the `offload: false`: a tool is not offloaded by default, only with "
        "`offload: true` for the tool or its item type. Or remove the `pin: true`, or write "
        "`pin: false` in a rule before it.",
    ),
    "PC326": Code(
        "an excerpt in lines of any length",
        "`head` and `tail` in `lines` show whole lines. A text on a single line, such as JSON, is "
        "shown whole, so its placeholder is longer than the text: `must_shrink` leaves such an "
        "item in the context for ever, and without `must_shrink` the list grows. Add "
        "`max_line_chars`, or measure the excerpt in `chars` or `tokens`.",
    ),
    "PC327": Code(
        "a `compact` without a gate",
        "A step without `when` runs before every model call. A `compact` then summarises a "
        "history of any length, and again as soon as `compaction.min_new` of what it replaces is "
        "new; each summary costs a model call and loses detail. Add a gate, such as "
        "`when: {tokens: {at_least: 80%}}`.",
    ),
    "PC328": Code(
        "a type or tool that its step can never take",
        "The step takes other items, but never one of this element of `types` or `tools`: the "
        "action is not for it, it is pinned, it lacks `offload: true` or has `offload: false`, "
        "`tools` or `except_tools` leave no tool of it, a `match` wants what no such item has, or "
        "a step before this one, without a gate, has always taken the same items. Give the type "
        "or tool `offload: true`, or take it out of the list.",
    ),
    "PC329": Code(
        "a step that loses what it replaces",
        "A step with the name of an inherited one replaces it whole. This one does not give "
        "the `select` of the inherited step, or gives nothing but a `do`. So it takes other items, "
        "or runs before every model call. Repeat the keys that are to stay; `policyctx show` "
        "prints the inherited step. To take what a step without a `select` takes, write "
        "`select: {}`; to run without a gate, write `when: null`.",
    ),
    "PC330": Code(
        "a summarizer that is not built in",
        "`summary.by` names no summarizer that ships with the library. Code may register one "
        "of this name with `policyctx.register_summarizer`, which `check` cannot see. If no code "
        "does, no session can be made with the policy. Mend the name, or register the summarizer "
        "before the session is made.",
    ),
    "PC331": Code(
        "a tokenizer that is not built in",
        "`model.tokenizer` is no name of a built-in tokenizer. Code may register a counter of this "
        "name with `policyctx.register_tokenizer`, which `check` cannot see. If no code does, no "
        "session can be made with the policy. Mend the name, or register the counter before the "
        "session is made.",
    ),
    "PC332": Code(
        "a prompt that does not say it",
        "`summary.prompt` is what a model is told. The extractive summary asks no model, so the "
        "key does nothing there; and `rules` reach the model only where the prompt has `{rules}`. "
        "Name a summarizer that asks a model, put the field into the prompt, or remove the key.",
    ),
    "PC333": Code(
        "a step after a `drop` that leaves it nothing",
        "A step without a gate drops all that this step selects, before it, at every model call. "
        "What a later step may still take is what could not leave the list without breaking it: "
        "the list would begin or end with a message of the assistant, or be empty. Write the step "
        "before the `drop`, give the `drop` a `when`, or let it select less.",
    ),
    "PC340": Code(
        "a `batches` without effect",
        "`batches` says whether what belongs to parallel calls stays together while a part of it "
        "is recent. A `keep_recent` of 0 keeps nothing, and what the user or the model wrote "
        "belongs to no call. Remove the key, or raise the number.",
    ),
    "PC341": Code(
        "a `since_last` that nothing remembers",
        "`since_last` counts what came since the step last took something, which the session "
        "remembers beside its files. With `store: {state: none}` it remembers nothing, so the "
        "gate counts from the beginning of the list at every call. Keep the state, or use a gate "
        "that counts the whole list.",
    ),
    "PC342": Code(
        "a key that says nothing where the store is",
        "`sync` and `mode` are for stores in a folder; at a URL the service decides when an object "
        "is durable and who may read it. `timeout` is for stores at a URL. Remove the key, or "
        "change `store.root`.",
    ),
    "PC350": Code(
        "a `spill_to` without effect",
        "`spill_to` names a folder in which texts wait while the service of a store at a URL is "
        "away. Where `store.root` is a folder, nothing is ever away. Remove the key, or change "
        "`store.root`.",
    ),
    "PC351": Code(
        "a `spill_to` that changes names",
        "With `on_conflict: error` each text has the very name that `store.path` gives it. While "
        "the service is away, nobody can ask whether that name is taken, so a text that waits in "
        "`spill_to` gets a name with a part of its hash. Remove one of the two keys.",
    ),
}


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
Lists and maps are nested more than 32 levels deep. No key of the language needs more
than a few, so this is a slip of brackets or a file that is not a policy. Take the brackets away:

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

A wording with `{head}`, `{tail}` or `{gap}` is an error too if no key beside it says what to show,
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
    "PC207": Code(
        "a file outside of the project",
        """\
`extends`, or an entry of a `policyctx.yaml`, leads out of the project, by its path or through a
link. The project is the nearest folder with a `.git` at or above the policy. Without one it is the
working directory if the policy is below it, else the policy's own folder. So a policy that someone
else wrote cannot read any file. Whether there is such a file is not said. Copy the file into the
project, or allow its folder: `policyctx check --extends-from FOLDER`, `load_policy(name,
extends_from=[FOLDER])`, or for every command and call the environment variable
`POLICYCTX_EXTENDS_FROM`, which takes several folders with the separator of `PATH`:

    extends: [/etc/policyctx/base.yaml]    # wrong in /home/me/project/policy.yaml
    extends: [./base.yaml]""",
    ),
    "PC208": Code(
        "a file that is not a policy",
        """\
A file that another file names, or that a link leads to, is not a policy: it is not YAML, or its
`apiVersion` does not begin with `policyctx/`. Nothing of it is shown, since it may be any file. A
base is a whole policy with an `apiVersion` and a `name`. Mend the path, or add the keys to the
file:

    min_chars: 500                                             # wrong in base.yaml
    {apiVersion: policyctx/v1, name: base, min_chars: 500}""",
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
