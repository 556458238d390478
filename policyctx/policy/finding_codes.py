"""The codes of static findings; see `codes.py`."""

from __future__ import annotations

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
        "The policy says how files come back after a compaction, but no tool has `reads_file`, so "
        "nothing tells which files were read and none ever comes back. Name the tools that read "
        "files, such as `read_file: {reads_file: path}`, or set `restore.max_files` to 0.",
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
        "`drop` and `with_input`, the path needs `{item_type}` as well.",
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
        "A glob of `except_tools` matches no tool that the `tools` of the same selection match, so "
        "it takes nothing away. It is most likely misspelt. Mend the glob, or remove it.",
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
        "`{tail}`, and `max_line_chars` and `line_numbers` need one of the two. Without it the "
        "key does nothing. Put the field into the text, or remove the key.",
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
        "a `per` where nothing is counted apart",
        "`per` says among whom items or tokens are counted: each tool, each type, or all. The "
        "newest messages and turns are those of the whole list, so `per` beside them does "
        "nothing. Remove it, or count `items` or `tokens`.",
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
    "PC330": Code(
        "a summarizer that is not built in",
        "`summary.by` names neither `extractive` nor `anthropic`. Code may register a summarizer "
        "of this name with `policyctx.register_summarizer`, which `check` cannot see. If no code "
        "does, no session can be made with the policy. Mend the name, or register the summarizer "
        "before the session is made.",
    ),
}
