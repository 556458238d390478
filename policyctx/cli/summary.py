"""`policyctx summary`: what a compaction would leave of a conversation."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.progress import Progress, SpinnerColumn, TextColumn

from policyctx.cli import output
from policyctx.cli.conversation import Given, RecordedChoice, read_messages
from policyctx.cli.output import option
from policyctx.compaction.rounds import Round, SourcedLine, rounds
from policyctx.errors import counted
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import counter_for

_DEFAULT_POLICY = "coding-agent"
# No limit of words, where only other limits were given.
_ANY_WORDS = 10**9


def summary(
    messages: output.Messages,
    policy: Annotated[
        str,
        option("The policy whose `compaction.summary` holds, by name or path.", metavar="POLICY"),
    ] = _DEFAULT_POLICY,
    count: Annotated[
        int,
        option(
            "Compact N times: the second compaction summarises the first summary and what"
            " came after it, and so on.",
            "--rounds",
            metavar="N",
            min=1,
        ),
    ] = 1,
    max_words: Annotated[
        int | None, option("The most words of a summary.", metavar="N", min=1)
    ] = None,
    max_tokens: Annotated[
        int | None, option("The most tokens of a summary.", metavar="N", min=1)
    ] = None,
    max_chars: Annotated[
        int | None, option("The most characters of a summary.", metavar="N", min=1)
    ] = None,
    max_share: Annotated[
        str | None, option("At most such a share of the history, as `10%`.", metavar="PERCENT")
    ] = None,
    sources: Annotated[
        bool, option("Show for each line the message that it comes from.", "--sources")
    ] = False,
    recorded: output.Recorded = None,
    call: output.Call = None,
    partial: output.Partial = False,
    as_json: output.Json = False,
) -> None:
    """Print the summary that a compaction would leave of a conversation.

    It is the extractive summary: no model is asked, whatever the policy says. A limit in the
    options replaces that of the policy. The figures of each round go to stderr.

    Example: policyctx summary session.jsonl --rounds 3 --sources
    """
    compiled = OffloadPolicy.load(policy)
    step = compiled.compacting_step
    compaction = compiled.policy.compaction if step is None else compiled.compaction(step)
    limits = {
        "max_words": max_words,
        "max_tokens": max_tokens,
        "max_chars": max_chars,
        "max_share": max_share,
    }
    settings = _limited(compaction.summary, {k: v for k, v in limits.items() if v is not None})
    given = read_messages(messages, RecordedChoice(recorded, call, partial))
    err = output.console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    made: list[Round] = []
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(f"round 1 of {count}", total=None)
        for one in rounds(
            given.messages,
            settings,
            counter_for(compiled.model.tokenizer),
            count=count,
            path_fields=compiled.path_fields,
            author_of=compiled.author_by_text,
        ):
            made.append(one)
            progress.update(task, description=f"round {one.number + 1} of {count}")
    if not made:
        raise typer.BadParameter("there is nothing to summarise", param_hint="MESSAGES")
    out = output.console()
    if as_json:
        output.print_json(_report(given, made))
        return
    for line in made[-1].lines:
        out.out(_with_source(line) if sources else line.text)
    for one in made:
        err.print(_figures(one, len(made)))


def _limited(settings: Summary, limits: dict[str, Any]) -> Summary:
    """Return the settings with these limits, in place of all that the policy sets."""
    if not limits:
        return settings
    try:
        own = Summary.model_validate(limits)
    except ValidationError as error:
        [first, *_] = error.errors()
        name = str(first["loc"][0]).replace("_", "-")
        raise typer.BadParameter(str(first["msg"]), param_hint=f"--{name}") from error
    changed: dict[str, Any] = {
        name: getattr(own, name) for name in ("max_tokens", "max_chars", "max_share")
    }
    changed["max_words"] = limits.get("max_words", _ANY_WORDS)
    return settings.model_copy(update=changed)


def _with_source(line: SourcedLine) -> str:
    if not line.group:
        return line.text
    first, *notes = line.text.split("\n")
    source = "several messages" if line.message is None else f"message {line.message}"
    return "\n".join([f"{first}  [{source}]", *notes])


def _figures(one: Round, count: int) -> str:
    share = 100 * one.tokens / one.replaced_tokens if one.replaced_tokens else 0
    return (
        f"round {one.number} of {count}: {counted(one.words, 'word')},"
        f" {one.tokens:,} tokens, {share:.1f} % of the {one.replaced_tokens:,} tokens of"
        f" {counted(len(one.messages), 'message')}"
        f"{' and the summary before' * (one.number > 1)}"
    )


def _report(given: Given, made: Sequence[Round]) -> dict[str, Any]:
    recording = given.recording
    return {
        "recording": None if recording is None else recording.name,
        "format": None if recording is None else recording.format,
        "messages": len(given.messages),
        "rounds": [
            {
                "round": one.number,
                "first_message": one.messages.start,
                "messages": len(one.messages),
                "replaced_tokens": one.replaced_tokens,
                "words": one.words,
                "tokens": one.tokens,
                "summary": one.summary,
                "lines": [line._asdict() for line in one.lines],
            }
            for one in made
        ],
    }
