"""How history is summarised, and what comes back afterwards."""

from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, Strict

from policyctx.definitions.names import PROMPT_FIELDS, RESTORED_FIELDS, SUMMARY_FIELDS
from policyctx.policy.models.base import (
    Amount,
    Count,
    Duration,
    Names,
    OneOrMore,
    Prices,
    Ratio,
    Section,
    ShrinkLimit,
    Text,
    such,
)
from policyctx.policy.models.rules import KeepRecent, Recency
from policyctx.policy.values import Duration as DurationValue
from policyctx.policy.values import Share, flag_or_map, parsed_template, short_form, template_of

FileSource = Literal["read", "edited", "written"]


class SummarySection(Section):
    """A section of the summary."""

    short_form: ClassVar = "name"

    name: Annotated[str, Field(min_length=1, examples=["Task Status"])]
    """Its heading."""
    ask: Annotated[str, such("What is done, and what is left.")] = ""
    """What it must say."""


class SummaryCheck(Section):
    """What a summary must have to be accepted. The extractive summary is never checked."""

    sections: bool | None = None
    """Require each of `sections` under its heading. Default: `true` for a built-in summarizer that
    asks a model, `false` for one that code gives or registers, and for a `prompt` without
    `{sections}`."""
    min_words: Count | None = None
    """Refuse a shorter summary, but never require more than `max_words`. Default: 30, or a quarter
    of `max_words` if that is less, for a built-in summarizer that asks a model, else 0."""


class Summary(Section):
    """How the summary is made."""

    by: Text = "extractive"
    """`extractive` (no model, no network), `none` (the wording alone, then what is pinned),
    `anthropic`, `openai` (or an endpoint compatible with it), or a name registered in code."""
    model: str = "claude-haiku-4-5"
    """The model that is asked. `openai` needs one. With `reuse_cache` it is the session's own,
    by default `model.name`."""
    base_url: Annotated[Text | None, such("http://localhost:8000/v1")] = None
    """The endpoint, for a client that the library makes. Default: the SDK's own."""
    api_key_env: Annotated[Text | None, such("SUMMARY_API_KEY")] = None
    """The environment variable with the key, for a client that the library makes. Default: the
    SDK's own variable; with `base_url` no key is sent."""
    reuse_cache: bool = False
    """Ask at the end of the session's own request, which the provider reads from its cache. `false`
    sends the history as a record to `model`."""
    max_words: Annotated[int, Field(ge=1)] = 1200
    """Words asked for; a CJK character, or 32 characters without a space, count as one. Of
    `max_words`, `max_tokens`, `max_chars` and `max_share` the least counts, and the extractive
    summary never exceeds it."""
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    """Tokens asked for."""
    max_chars: Annotated[int | None, Field(ge=1)] = None
    """Characters asked for."""
    max_share: Annotated[Ratio | None, such("10%")] = None
    """The share of the replaced history's tokens asked for. An earlier summary in the history
    counts whole."""
    max_input: Amount = Share(Fraction(80))
    """Of the summariser's window; a longer history is shortened first."""
    sections: Annotated[
        tuple[
            Annotated[
                SummarySection,
                BeforeValidator(
                    short_form("name", str, "a name"), json_schema_input_type=Text | SummarySection
                ),
            ],
            ...,
        ],
        Strict(strict=False),
        such(["Goals", {"name": "Errors", "ask": "Each with its cause."}]),
    ] = tuple(
        SummarySection(name=name)
        for name in (
            "Goals & Decisions",
            "File Operations",
            "Tool Calls",
            "Task Status",
            "Errors & Resolutions",
        )
    )
    """The summary's sections, in order: names, or maps with what to ask."""
    rules: Annotated[Names, such(["Keep every file path."])] = ()
    """Sentences that every prompt carries."""
    prompt: Annotated[
        Annotated[str, BeforeValidator(template_of(PROMPT_FIELDS)), Field(min_length=1)] | None,
        such("Summarise in {max_words} words:\n{sections}\n{rules}"),
    ] = None
    """All that a model is told beside the conversation; its fields are `{sections}`, `{rules}`,
    `{max_words}` and `{earlier_summary}`."""
    attempts: Annotated[int, Field(ge=1, le=10)] = 3
    """The most attempts at one summary."""
    backoff: Duration = DurationValue(2)
    """The wait after a first failed attempt, which doubles, and is up to a quarter shorter, at
    random. A provider's `retry-after` takes its place."""
    timeout: Duration = DurationValue(60)
    """How long one attempt may take."""
    total_timeout: Duration = DurationValue(300)
    """How long all attempts and the waits between them may take together."""
    check: Annotated[
        SummaryCheck | None,
        BeforeValidator(flag_or_map, json_schema_input_type=bool | SummaryCheck | None),
        Field(examples=[{"sections": True, "min_words": 30}, False]),
    ] = SummaryCheck()
    """What a summary must have to be accepted. `false` accepts every answer that is not empty;
    `true`, where it is written, also checks that of a callable."""
    verify: bool | None = None
    """Compare a model's summary with the extractive one: orders, limits and exact values of the
    user that it lacks are appended. Default: `true` for a built-in summarizer that asks a model,
    `false` for one that code gives or registers."""
    price: Annotated[
        Prices | None, such({"input": 1.0, "cache_write": 1.25, "cache_read": 0.1, "output": 5.0})
    ] = None
    """What a call of the summarizer's model costs. Default: `model.price`."""
    on_failure: Literal["skip", "extractive"] = "skip"
    """After the last attempt: the list as it was, or the extractive summary. Either way a warning
    gives the cause."""
    must_shrink_to: ShrinkLimit = Share(Fraction(100))
    """The share of the replaced history's tokens that a summary may have, else it is refused.
    `false` accepts any length."""

    def with_instructions(self, text: str) -> Self:
        """Return the settings with one more rule; a `prompt` without `{rules}` ends with it."""
        changes: dict[str, object] = {"rules": (*self.rules, text)}
        prompt = self.prompt
        if prompt is not None and "rules" not in parsed_template(prompt, PROMPT_FIELDS).fields:
            literal = text.replace("{", "{{").replace("}", "}}")
            changes["prompt"] = f"{prompt}\n\n{literal}"
        return self.model_copy(update=changes)


class Restore(Section):
    """Which files come back after a compaction."""

    sources: Annotated[
        tuple[FileSource, ...],
        Strict(strict=False),
        OneOrMore,
        Field(min_length=1, examples=[["read", "edited", "written"]]),
    ] = ("read",)
    """What makes a file a candidate: that a tool with `reads_file`, `edits_file` or `writes_file`
    took it."""

    always: Annotated[Names, such(["AGENTS.md", "CLAUDE.md"])] = ()
    """Files that come back first after every summary, such as instructions, whether or not a tool
    read them. They do not count for `max_files`."""
    max_files: Count = 5
    """The newest N different files are the candidates."""
    max_tokens_per_file: Count = 5000
    """A larger file is treated as `large_files` says."""
    large_files: Literal["skip", "windows"] = "skip"
    """`windows` restores the lines of a larger file that were read last (see `reads_lines`) and
    those around its last edits, up to `max_tokens_per_file`."""
    max_tokens_total: Count = 50000
    """Where the sum would be over this, restoration stops."""
    within_gate: bool = True
    """Bring back only files, the newest first, with which a step's gate on tokens stays closed."""
    work_dir: Text = "."
    """The folder that files must be in."""


class CompactionWording(Section):
    """The texts that a compaction leaves."""

    summary: Annotated[str, BeforeValidator(template_of(SUMMARY_FIELDS))] = (
        "[Conversation compressed]\n\n{summary}"
    )
    """The message with the summary. `{archive_path}` is the file with the replaced messages,
    `{how_to_search}` a paragraph on how to search it, both empty without `archive`."""
    summary_reply: str = (
        "Understood. I have the context from the compressed conversation. Continuing work."
    )
    """The assistant's reply to it; empty for none."""
    restored: Annotated[str, BeforeValidator(template_of(RESTORED_FIELDS))] = (
        "[Restored after compact] {path}:\n{content}"
    )
    """The message with a restored file."""
    restored_reply: str = "Noted, file content restored."
    """The assistant's reply to it; empty for none."""


class Carry(Section):
    """What of the user's orders, exact values, open tasks and edited files a host's own compaction
    must not lose.
    """

    max_tokens: Annotated[int, Field(ge=1)] = 2000
    """Tokens of what is delivered after a summary that lacks it. Prohibitions come first, then
    orders, exact values, tasks and files."""
    files: Count = 10
    """The newest N edited files are delivered."""


class Compaction(Section):
    """How history is replaced by a summary."""

    keep_first: Count = 0
    """Messages after the head that stay."""
    keep_recent: Annotated[Recency, such({"messages": 4}, {"tokens": "10%"})] = KeepRecent(
        messages=0
    )
    """A tail that stays; stretched so that pairs stay whole."""
    keep_system_messages: bool = True
    """System and developer messages in the middle of the list stay. `false` replaces them, and the
    extractive summary quotes them."""
    keep_newest_user_message: bool = False
    """Of what is replaced, the newest message of the user stays, behind the summary."""
    min_new: Annotated[Ratio, such("10%")] = Fraction(1, 10)
    """How much of what is replaced must have come since the compaction before. `0` is anything, and
    repeats a compaction that left its gate open."""
    summary: Summary = Summary()
    """How the summary is made."""
    restore: Restore = Restore()
    """Which files come back."""
    archive: bool = True
    """Save the replaced messages, whole, before anything is replaced."""
    wording: CompactionWording = CompactionWording()
    """The texts that it leaves."""
