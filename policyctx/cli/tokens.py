"""`policyctx tokens`: what a conversation weighs, by type and by tool, and what was billed."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from rich.console import Console

from policyctx.cli import output
from policyctx.cli.conversation import RecordedChoice, read_messages
from policyctx.cli.output import option
from policyctx.definitions.items import HostObject, Item, Medium, Message
from policyctx.definitions.tokenizers import DEFAULT_TOKENIZER, Tokenizer
from policyctx.messages.editing import request_content
from policyctx.messages.reading import items_of
from policyctx.replay.accuracy import SETTLED_FROM, Prediction, accuracy, predictions
from policyctx.replay.recording import ModelCall
from policyctx.tokens.counter import TokenCounter, counter_for
from policyctx.tokens.sizes import ProviderModel, media_tokens, provider_model

# Rows of calls in the table; `--json` has all.
_SHOWN_CALLS = 10
Group = dict[str, tuple[int, int]]


def tokens(
    messages: output.Messages,
    tokenizer: Annotated[
        Tokenizer, option("What counts; `anthropic` asks the provider.")
    ] = DEFAULT_TOKENIZER,
    language_model: Annotated[
        str | None, option("The model's name, such as claude-opus-4-8, where known.", "--model")
    ] = None,
    recorded: output.Recorded = None,
    call: output.Call = None,
    partial: output.Partial = False,
    as_json: output.Json = False,
) -> None:
    """Show what a conversation weighs, by type and by tool.

    A recorded session also shows what was billed for each call of the model, against what was
    counted and what the calls before it let one foresee.

    Example: policyctx tokens session.jsonl
    """
    given = read_messages(messages, RecordedChoice(recorded, call, partial))
    recording = given.recording
    calls = [] if recording is None else [c for c in recording.calls if c.usage and c.usage.prompt]
    if language_model is None and calls:
        language_model = calls[-1].language_model
    counter = counter_for(tokenizer, language_model=language_model)
    content = request_content(given.messages, given.system)
    model = provider_model(content.provider, language_model)
    weights = _weights(given.messages, counter, model)
    total = counter.count_request(content, given.tools, model=model)
    made = [] if recording is None else list(predictions(recording, counter))
    stats = counter.stats
    if as_json:
        report = _report(weights, total) | {"tokenizer": tokenizer, "constants": model.name}
        report["estimated"] = (
            {"texts": stats.estimated, "problem": stats.problem} if stats.estimated else None
        )
        report["billed"] = _billed_report(made, calls)
        output.print_json(report)
        return
    _show(output.console(), weights, total, model)
    if stats.estimated:
        texts = "1 text was" if stats.estimated == 1 else f"{stats.estimated:,} texts were"
        output.console(stderr=True).print(f"{texts} counted locally: {stats.problem}")
    if made:
        _show_billed(output.console(), made)


def _weights(
    messages: Sequence[Message], counter: TokenCounter, model: ProviderModel
) -> list[tuple[Item, int]]:
    # What is inside of a result is a part of that one's weight.
    items = [item for item in items_of(messages) if item.inside is None]
    counts = counter.count_many([item.counted for item in items])
    return [
        (item, count + media_tokens(_sized(item), model, counter))
        for item, count in zip(items, counts, strict=True)
    ]


def _sized(item: Item) -> list[Medium]:
    """Return the media of an item except sounds, which the request contains as JSON texts."""
    return [medium for medium in item.media if medium.kind != "sound"]


def _grouped(weights: Sequence[tuple[Item, int]], kind: Literal["type", "tool"]) -> Group:
    """Return the items and tokens of each type or tool, the heaviest first."""
    groups: Group = {}
    for item, weight in weights:
        group = item.type if kind == "type" else item.tool
        if group is not None:
            items, sum_ = groups.get(group, (0, 0))
            groups[group] = items + 1, sum_ + weight
    return dict(sorted(groups.items(), key=lambda pair: -pair[1][1]))


def _show(
    out: Console, weights: Sequence[tuple[Item, int]], total: int, model: ProviderModel
) -> None:
    for kind in ("type", "tool"):
        if groups := _grouped(weights, kind):
            out.print(_table(kind, groups, total))
            out.print()
    in_items = sum(weight for _, weight in weights)
    out.print(f"items: {in_items:,} tokens")
    added = f"{total - in_items:,} of them added around the items by the API ({model.name})"
    out.print(f"request: {total:,} tokens, {added}")


def _table(kind: str, groups: Group, total: int) -> HostObject:
    rows = (
        (name, n, tokens, f"{100 * tokens / total:.1f} %" if total else "")
        for name, (n, tokens) in groups.items()
    )
    return output.Grid(
        (kind, "items", "tokens", "share"), rows, numeric={"items", "tokens", "share"}
    )


def _show_billed(out: Console, made: Sequence[Prediction]) -> None:
    shown = made[-_SHOWN_CALLS:]
    rows = (
        (
            *(one.call, one.counted, one.predicted, one.billed),
            f"{100 * one.error:+.1f} %".replace("-", "−"),
        )
        for one in shown
    )
    columns = ("call", "counted", "predicted", "billed", "error")
    out.print()
    out.print(output.Grid(columns, rows, numeric=columns))
    out.print()
    left = f"the last {len(shown)} of " if len(shown) < len(made) else ""
    out.print(f"billed: {left}{len(made)} calls of the model, hidden parts included")
    if (of_calls := accuracy(made)) is not None:
        out.print(
            f"prediction from call {SETTLED_FROM} on: median error {of_calls.median:.1%},"
            f" 95 % of calls within {of_calls.within:.1%}, largest {of_calls.largest:.1%}"
        )


def _report(weights: Sequence[tuple[Item, int]], total: int) -> dict[str, Any]:
    return {
        "request_tokens": total,
        "item_tokens": sum(weight for _, weight in weights),
        "types": _rows("type", _grouped(weights, "type")),
        "tools": _rows("tool", _grouped(weights, "tool")),
    }


def _rows(kind: str, groups: Group) -> list[dict[str, Any]]:
    return [{kind: name, "items": n, "tokens": tokens} for name, (n, tokens) in groups.items()]


def _billed_report(made: Sequence[Prediction], calls: Sequence[ModelCall]) -> dict[str, Any] | None:
    if not made:
        return None
    of_calls = accuracy(made)
    return {
        "calls": [
            {
                "call": one.call,
                "language_model": call.language_model,
                "counted": one.counted,
                "predicted": one.predicted,
                "billed": one.billed,
                "error": round(one.error, 4),
            }
            for one, call in zip(made, calls, strict=True)
        ],
        "median_error": of_calls and round(of_calls.median, 4),
        "error_of_95_percent": of_calls and round(of_calls.within, 4),
        "largest_error": of_calls and round(of_calls.largest, 4),
    }
