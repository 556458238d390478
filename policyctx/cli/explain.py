"""What a policy does with a conversation: `plan` shows it, `apply` does it, `explain` says why."""

import errno
import os
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from rich.console import Console

from policyctx.cli import output, plans
from policyctx.cli.conversation import Given, RecordedChoice, read_messages
from policyctx.cli.output import option
from policyctx.compaction.assembly import History
from policyctx.compaction.points import HistoryPoint, carried, points_of
from policyctx.compaction.summarizers import ExtractiveSummarizer
from policyctx.definitions.actions import Action
from policyctx.definitions.items import recall_tool
from policyctx.errors import MessagesError, StoreError, counted
from policyctx.patterns import names_of_marks
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.decisions import Decision
from policyctx.planning.facts import Facts
from policyctx.planning.plan import Outcome, Plan
from policyctx.replay.audit import conversation_of
from policyctx.session import Session
from policyctx.store.filesystem import ContextFileSystem
from policyctx.tokens.counter import counter_for
from policyctx.turns.breakpoints import Breakpoints
from policyctx.turns.reporting import fullness_ahead
from policyctx.turns.result import Result

_COLUMNS = ("message", "item", "tool", "tokens", "after", "decision", "why")
# Below this width, the table has fewer columns.
_WIDE = 120
_NARROW_COLUMNS = ("item", "tool", "tokens", "decision", "why")
# The most characters of an id and of a tool's name; what a width has beyond `_WIDE` is added.
_ITEM, _TOOL = 36, 24
_NARROW_ITEM, _NARROW_TOOL = 12, 17
_LARGEST = 10
_INDENT = "    "
# Characters of a quotation.
_QUOTE = 200


def plan(
    policy: output.Policy,
    messages: output.Messages,
    root: output.Root = None,
    session_id: output.SessionId = None,
    recorded: output.Recorded = None,
    call: output.Call = None,
    partial: output.Partial = False,
    details: Annotated[
        bool, option("Show items that closed gates leave alone, too.", "--details")
    ] = False,
    as_json: output.Json = False,
) -> None:
    """Show what a policy would do, and why; write nothing.

    Example: policyctx plan coding-agent session.jsonl
    """
    # No summary is made, so the policy's summarizer need not be there.
    nobody = ExtractiveSummarizer()
    session = Session(policy, root=root, session_id=session_id, summarizer=nobody)
    given = read_messages(messages, RecordedChoice(recorded, call, partial))
    request = given.teach(session)
    planned = session.plan(given.messages, request=request)
    placed = session.breakpoints(given.messages, request=request)
    repaired = [*plans.repairs_in_words(session.policy, given.messages)]
    out = output.console()
    if as_json:
        report = plans.plan_report(planned) | given.report(session) | {"repaired": repaired}
        report |= plans.breakpoints_report(placed) | plans.window_report(planned)
        output.print_json(report)
        return
    output.print_wrapped(out, plans.verdict(planned))
    if told := plans.compaction_in_words(planned, "would be"):
        output.print_wrapped(out, f"{told}, which is not deducted")
    shown = [one for one in planned.decisions if details or one.reason.code != "gate_closed"]
    if shown:
        out.print()
        out.print(_decisions(shown, planned.facts, out.width))
    if untouched := len(planned.decisions) - len(shown):
        out.print()
        items = counted(untouched, "item")
        output.print_wrapped(out, f"closed gates leave {items} alone; --details shows why")
    footer = [*repaired, *plans.breakpoints_in_words(placed)]
    if warning := fullness_ahead(planned):
        footer.append(f"warning: {warning}")
    if footer and planned.decisions:
        out.print()
    for line in footer:
        output.print_wrapped(out, line, _INDENT)


def _decisions(decisions: Sequence[Decision], facts: Facts, width: int) -> output.Grid:
    columns = _COLUMNS if width >= _WIDE else _NARROW_COLUMNS
    rows = (_row(decision, facts, width) for decision in decisions)
    numeric = {"message", "tokens", "after"}
    return output.Grid(columns, rows, numeric=numeric, whole={"item", "tool", "decision"})


def _row(decision: Decision, facts: Facts, width: int) -> tuple[object, ...]:
    item, tokens = decision.item, facts.tokens(decision.item)
    name, what = item.tool or item.type, decision.action
    if (more := width - _WIDE) < 0:
        id_, name = (
            output.shortened(item.item_id, _NARROW_ITEM),
            output.shortened(name, _NARROW_TOOL),
        )
        return id_, name, tokens, what, decision.reason
    after = tokens if what is Action.KEEP else facts.length(decision.placeholder or "", "tokens")
    id_, name = output.shortened(item.item_id, _ITEM + more), output.shortened(name, _TOOL + more)
    return item.message, id_, name, tokens, after, what, decision.reason


def apply(
    policy: output.Policy,
    messages: output.Messages,
    path: Annotated[
        Path | None, option("File for the new messages, in place of stdout.", "--output", "-o")
    ] = None,
    root: output.Root = None,
    session_id: output.SessionId = None,
    recorded: output.Recorded = None,
    call: output.Call = None,
    partial: output.Partial = False,
    as_json: output.Json = False,
) -> None:
    """Apply a policy: new messages, and files for what left.

    New messages go to stdout in the shape of the old, an array or the whole request body; those of
    a recording in a body with the name of its model. A summary goes to stderr, what is offloaded
    to files.

    Example: policyctx apply coding-agent session.jsonl -o smaller.json
    """
    session = Session(policy, root=root, session_id=session_id)
    # With `--json` stderr is a report for programs.
    given = read_messages(messages, RecordedChoice(recorded, call, partial), quiet=as_json)
    asked = given.teach(session, quiet=as_json)
    with _opened(path) as write:
        result = session.apply(given.messages, request=asked)
        if any(reason.code == "not_saved" for o in result.plan.outcomes for _, reason in o.left):
            raise StoreError(session.writes.problem, path=str(session.store.root))
        request = given.request
        if result.breakpoints:
            request = request.marked(result.system, result.tools)
        write(output.json_text(given.document_with(request, result.messages)))
    planned, placed = result.plan, result.breakpoints
    err = output.console(stderr=True)
    if as_json:
        report = plans.plan_report(planned) | given.report(session) | applied_report(result)
        report["repaired"] = [*plans.repairs_in_words(session.policy, given.messages)]
        report |= plans.breakpoints_report(placed)
        output.print_json(report, stderr=True)
        return
    err.print(plans.outcome(planned, "offloaded"))
    for warning in result.warnings:
        err.print(f"warning: {warning}")
    after = planned.tokens_after
    if spent := plans.usage_in_words(result.summary_usage):
        err.print(spent)
    if (made := result.compaction) is not None:
        err.print(plans.compaction_in_words(planned, "were"))
        if made.archive_path is not None:
            err.print(f"archived in {made.archive_path}")
        after -= made.stats.original_token_count - made.stats.compacted_token_count
    err.print(f"context: {output.saving(planned.tokens_before, after)}")
    for line in plans.breakpoints_in_words(placed):
        err.print(line)


def applied_report(result: Result) -> dict[str, Any]:
    """Return what came of a turn beyond its plan, as plain values for `--json`."""
    made = result.compaction
    stats = None if made is None else asdict(made.stats)
    archive = None if made is None else made.archive_path
    return {
        "compacted": stats,
        "archive": archive,
        "summary_usage": asdict(result.summary_usage),
        "warnings": list(result.warnings),
        "sources": list(result.sources),
    }


@contextmanager
def _opened(path: Path | None) -> Iterator[Callable[[str], None]]:
    """Open the file before anything is saved; yield a function that writes a text to it.

    A file gets its name when the text is complete, so it is never half written, and after an error
    it is as it was. Raises `StoreError` for a file that cannot be written.
    """
    if path is None:

        def write_stdout(text: str) -> None:
            sys.stdout.buffer.write(f"{text}\n".encode())
            sys.stdout.buffer.flush()

        yield write_stdout
        return
    with ExitStack() as undo:
        with _reported(path):
            file, unfinished = _created(path, undo)

        def write(text: str) -> None:
            with _reported(path):
                file.write(f"{text}\n".encode())
                if unfinished is None and file.seekable():
                    file.truncate()
                file.close()
                if unfinished is not None:
                    unfinished.replace(path.resolve())

        yield write


def _created(path: Path, undo: ExitStack) -> tuple[BinaryIO, Path | None]:
    """Return an open file, and its path if it is a new one that gets the name `path` later."""
    is_there = path.exists()  # raises for a name that no file can have
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    target = path.resolve()
    if is_there and not target.is_file():  # a pipe or a device
        return undo.enter_context(path.open("wb")), None
    if is_there and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if is_there and not os.access(target.parent, os.W_OK):
        return undo.enter_context(target.open("r+b")), None
    unfinished = target.with_name(f".{secrets.token_hex(8)}.tmp")
    file = unfinished.open("xb")
    undo.callback(unfinished.unlink, missing_ok=True)
    undo.enter_context(file)
    if is_there:
        shutil.copymode(target, unfinished)
    return file, unfinished


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}", path=str(path)) from error


def explain(
    policy: output.Policy,
    messages: output.Messages,
    item: Annotated[
        str | None, option("Only this item: its number in the table, or its id.")
    ] = None,
    why_not: Annotated[
        bool, option("Only what stays in the context: why is this still here?", "--why-not")
    ] = False,
    largest: Annotated[
        int, option("How many items to show, the largest first; 0 is all.", min=0)
    ] = _LARGEST,
    ephemeral: Annotated[
        list[str] | None,
        option(
            "Let N results of a tool stay, as @tool(ephemeral=N) does in code.", metavar="TOOL=N"
        ),
    ] = None,
    root: output.Root = None,
    session_id: output.SessionId = None,
    recorded: output.Recorded = None,
    call: output.Call = None,
    partial: output.Partial = False,
    as_json: output.Json = False,
) -> None:
    """Explain what a policy would do with each item, and which line says so; write nothing.

    Example: policyctx explain coding-agent session.jsonl --why-not
    """
    # No summary is made, so the policy's summarizer need not be there.
    nobody = ExtractiveSummarizer()
    hints = dict(map(_hint, ephemeral or ()))
    session = Session(policy, root=root, session_id=session_id, summarizer=nobody, hints=hints)
    given = read_messages(messages, RecordedChoice(recorded, call, partial))
    request = given.teach(session)
    planned = session.plan(given.messages, request=request)
    found = _chosen(planned, item, why_not=why_not)
    positions = found[:largest] if largest else found
    placed = session.breakpoints(given.messages, request=request)
    repaired = [*plans.repairs_in_words(session.policy, given.messages)]
    out = output.console()
    if as_json:
        report = _report(planned, positions) | given.report(session)
        report |= plans.breakpoints_report(placed) | plans.window_report(planned)
        report |= {"repaired": repaired, "redacted": dict(_redacted(planned))}
        points, report["not_carried"] = _carried(session.policy, given)
        report["carry"] = [asdict(point) for point in points]
        output.print_json(report)
        return
    output.print_wrapped(out, plans.verdict(planned))
    out.print()
    for step in planned.outcomes:
        state = "open" if step.is_open else "closed"
        gates = "; ".join(verdict.sentence for verdict in step.gates) or "no gates"
        where = plans.place(session.policy, ("steps", step.step))
        said = f"step {step.step} ({where}): {state}, {gates}; {_taken(step)}"
        output.print_wrapped(out, said, _INDENT)
    for line in (*repaired, *_remarks(planned, placed, session, session_id)):
        output.print_wrapped(out, line, _INDENT)
    out.print()
    for position in positions:
        _print_item(planned, position, out)
    if left := len(found) - len(positions):
        out.print(f"{left:,} smaller items are not shown; --largest 0 shows all")
    for line in () if item else _on_carrying(session.policy, given):
        output.print_wrapped(out, line, _INDENT)


def _remarks(
    planned: Plan, placed: Breakpoints, session: Session, session_id: str | None
) -> Iterator[str]:
    """Yield what is said of the request as a whole: markers, its size, items, and secrets."""
    yield from plans.breakpoints_in_words(placed)
    if warning := fullness_ahead(planned):
        yield f"warning: {warning}"
    if others := len(planned.items) - len(planned.decisions):
        yield f"no step looks at {others:,} of all {counted(len(planned.items), 'item')}"
    for name, number in _redacted(planned).items():
        said = f"redacted: {name}, {number:,} × ({plans.place(session.policy, ('redact', name))})"
        place = _place_of_original(session, name, session_id)
        yield f"{said}; the original is kept in {place}" if place else said


def _on_carrying(policy: OffloadPolicy, given: Given) -> Iterator[str]:
    """Yield what `carry` delivers, line by line, and how much it has no room for."""
    found, others = _carried(policy, given)
    place = plans.place(policy, ("carry",))
    where = " of the whole conversation" if given.is_compacted else ""
    for point in found:
        said = output.shortened(point.text, _QUOTE)
        said = f"message {point.message}{where}, {point.kind}: {said}"
        yield f"carried if a summary of the host lacks it: {said} ({place})"
    if others and (settings := policy.policy.carry):
        room = f"{settings.max_tokens:,} tokens and {counted(settings.files, 'file')}"
        yield f"not carried: {others:,} more, for which carry has no room, {room} ({place})"


def _carried(policy: OffloadPolicy, given: Given) -> tuple[list[HistoryPoint], int]:
    """Return what `carry` delivers behind a summary that lacks all of it, and how many others."""
    settings, count = policy.policy.carry, counter_for(policy.model.tokenizer).count
    if settings is None:
        return [], 0
    whole = given.recording if given.is_compacted else None
    points = points_of(History(given.messages if whole is None else conversation_of(whole)))
    found = carried(points, "", settings, count)
    return found, len(points) - len(found)


def _redacted(planned: Plan) -> Counter[str]:
    texts = (item.text for item in planned.items if item.inside is None)
    return Counter(name for text in texts for name in names_of_marks(text))


def _place_of_original(session: Session, name: str, session_id: str | None) -> str:
    """Return the journal in which the secrets of a name are kept; empty if they are not."""
    secret = session.policy.policy.redact.get(name)
    if secret is None or not secret.keep or not isinstance(session.store, ContextFileSystem):
        return ""
    place = session.store.journal
    return place if session_id else place.replace(session.session_id, "SESSION")


def _hint(given: str) -> tuple[str, dict[str, int]]:
    tool, _, number = given.rpartition("=")
    if not tool or not number.isdecimal():
        raise typer.BadParameter(f"expected TOOL=N, got {given!r}", param_hint="--ephemeral")
    return tool, {"keep_recent": int(number)}


def _chosen(planned: Plan, item: str | None, *, why_not: bool) -> list[int]:
    if item is not None:
        return [_position(planned, item)]
    found = [
        i
        for i in range(len(planned.items))
        if not why_not or planned.decision(i).action is Action.KEEP
    ]
    return sorted(found, key=lambda i: -planned.facts.tokens(planned.items[i]))


def _position(planned: Plan, item: str) -> int:
    ids = [each.item_id for each in planned.items]
    if item in ids:
        return ids.index(item)
    if item.isdecimal() and int(item) < len(ids):
        return int(item)
    raise MessagesError(
        f"no item {item!r}: give a number below {len(ids)} or an id; --largest 0 lists them all"
    )


def _taken(step: Outcome) -> str:
    if (replacing := step.replaces) is not None:
        return f"replaces {replacing.messages:,} messages of {replacing.tokens:,} tokens"
    if step.stopped is not None and not step.took:
        return f"takes none, {step.stopped}"
    return f"takes {len(step.took):,}"


def _print_item(planned: Plan, position: int, out: Console) -> None:
    item, decision = planned.items[position], planned.decision(position)
    what = " ".join(filter(None, (item.type, item.tool)))
    size = f"{planned.facts.tokens(item):,} tokens"
    head = f"{position}  {item.item_id}  {what}, message {item.message}, {size}: {decision.action}"
    output.print_wrapped(out, f"{head}{_without_copy(planned, position)}", _INDENT)
    out.print(_verdicts(planned, position))


def _without_copy(planned: Plan, position: int) -> str:
    """Return why an item leaves without a file of its own, empty if it stays or has one."""
    item, decision = planned.items[position], planned.decision(position)
    if not decision.is_new or decision.saves or decision.action is Action.SUMMARISE:
        return ""
    if decision.is_read_back and decision.file is not None:
        return f", without a copy: it was read from {decision.file.relative_path}"
    if recall_tool(item.tool) is not None and item.kind == "tool_result":
        return ", without a copy: the call can be made again"
    return ""


def _verdicts(planned: Plan, position: int) -> output.Grid:
    policy = planned.conversation.policy
    rows = (
        (
            f"    {v.step}",
            "takes it" if v.taken else "leaves it",
            # The gates stand above, once.
            "gate_closed" if v.reason.code == "gate_closed" else v.reason,
            plans.place(policy, v.rule_path),
        )
        for v in planned.verdicts(position)
    )
    return output.Grid(
        ("step", "", "why", "says"), rows, whole={"step", "", "says"}, has_head=False
    )


def _report(planned: Plan, positions: list[int]) -> dict[str, Any]:
    policy = planned.conversation.policy
    return {
        "gates": [plans.gate_report(verdict, policy) for verdict in planned.gates],
        "compaction": plans.compaction_report(planned),
        "items": [
            {
                **plans.item_report(planned.items[position], position),
                "tokens": planned.facts.tokens(planned.items[position]),
                "decision": planned.decision(position).action,
                "read_back": planned.decision(position).is_read_back,
                "verdicts": [
                    {
                        "step": v.step,
                        "taken": v.taken,
                        "reason": plans.reason_report(v.reason),
                        "rule": v.rule,
                        "place": plans.place(policy, v.rule_path),
                    }
                    for v in planned.verdicts(position)
                ],
            }
            for position in positions
        ],
    }
