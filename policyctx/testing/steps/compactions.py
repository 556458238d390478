"""Compactions: what the summarizer says, what is on the disk, and what came of it."""

import json
import math
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

from policyctx.compaction.assembly import CompactStats, History, SummaryRequest
from policyctx.compaction.points import carried, points_of
from policyctx.compaction.prompt import instructions, recorded_parts
from policyctx.compaction.record import transcript
from policyctx.definitions.items import ARCHIVE_TYPE
from policyctx.messages.shapes.responses import OUTPUT_TYPES
from policyctx.messages.shapes.shape import SYSTEM_ROLES
from policyctx.policy.models.compaction import Carry
from policyctx.testing.contents import Message, ToolResult, compact, filler
from policyctx.testing.failures import OutcomeError, WordingError
from policyctx.testing.faults import ScriptedModel, ScriptedSummarizer
from policyctx.testing.kinds import Amount, Size, amount
from policyctx.testing.selecting import Returned
from policyctx.testing.step_definitions import given, given_or_when, then, when
from policyctx.testing.steps.files import bytes_of
from policyctx.testing.tables import Table, pairs_in
from policyctx.testing.world import World
from policyctx.tokens.counter import counter_for
from policyctx.turns.result import Compacted, Result

# A wait is twice the one before it; jitter shortens each by up to a quarter.
_LEAST_GROWTH = 1.5


@given_or_when(
    "the {who=summarizer|model} answers( {text:text})",
    'the summarizer answers "Rename the field."',
    'the model answers "I cannot help with that."',
)
def _(policyctx_world: World, who: str, text: str = "", docstring: str = "") -> None:
    """The summary of each compaction from here on; the text may be a docstring. What `the model`
    answers is checked and verified as a language model's answer: by default it must have the
    sections.
    """
    kind = ScriptedModel if who == "model" else ScriptedSummarizer
    policyctx_world.script_summarizer(kind).text = text or docstring


@given_or_when(
    "the summarizer fails (every time|{times:number} time(s))( saying {why:text})"
    "( with HTTP {status:number})( and retry-after {seconds:number})",
    "the summarizer fails every time",
    'the summarizer fails 2 times saying "overloaded"',
    "the summarizer fails 1 time with HTTP 429 and retry-after 7",
)
def _(
    policyctx_world: World,
    times: float = math.inf,
    why: str = "scripted",
    status: int | None = None,
    seconds: int | None = None,
) -> None:
    """The number of tries from here on that give no summary. A status is a provider's refusal,
    which may ask for a wait.
    """
    scripted = policyctx_world.script_summarizer()
    scripted.failures, scripted.why = times, why
    scripted.status, scripted.retry_after = status, seconds


@when("the host compacts to {text:text}", 'the host compacts to "The parser is done."')
def _(policyctx_world: World, text: str) -> None:
    """A summary that a host such as Claude Code makes itself: what it lacks is carried; the context
    of the scenario stays as it is.
    """
    policyctx_world.plan()
    policyctx_world.host_summary = text


@then(
    "(({only=only} ){texts:names}|nothing) (is|are) carried",
    'only "Never push to main." and "src/a.py" are carried',
    '"Never push to main." is carried',
    "nothing is carried",
)
def _(policyctx_world: World, texts: tuple[str, ...] = (), only: str = "") -> None:
    """These orders, values, tasks and files follow the host's summary; `only`: no others, in this
    order.
    """
    summary, policy = policyctx_world.host_summary, policyctx_world.policy
    if summary is None:
        raise WordingError('no compaction was made; write `When the host compacts to "…"`')
    settings, count = policy.policy.carry, counter_for(policy.model.tokenizer).count
    points = points_of(History(policyctx_world.messages)) if settings else []
    found = [one.text for one in carried(points, summary, settings or Carry(), count)]
    is_right = {*texts}.issubset(found) if texts and not only else found == [*texts]
    if not is_right:
        raise OutcomeError(", ".join(texts) or "nothing", ", ".join(found) or "nothing")


@given("each try is billed {tokens:number} tokens", "each try is billed 1000 tokens")
def _(policyctx_world: World, tokens: int) -> None:
    """Input tokens, of failed tries too."""
    policyctx_world.script_summarizer().billed = tokens


@given_or_when("the summarizer hangs")
def _(policyctx_world: World) -> None:
    """For ten seconds. Time-outs are not simulated, so set short ones."""
    policyctx_world.script_summarizer().hangs = True


@given_or_when(
    "the working directory has the file(s) {names:names} (of {size:size}|that read(s) {text:text})",
    'the working directory has the file "src/a.py" of 5,000 tokens',
    'the working directory has the files "a.md" and "b.md" that read "hello"',
)
def _(
    policyctx_world: World, names: tuple[str, ...], size: Size | None = None, text: str = ""
) -> None:
    """Files that the agent may read, below a folder of the scenario's own. Each replaces one of its
    name; a path may lead out of the folder.
    """
    for name in names:
        path = _in_work(policyctx_world, name)
        content = text if size is None else filler(size, policyctx_world.conversation.serial())
        path.write_text(content, encoding="utf-8", newline="")


@given(
    "the working directory has the {kind=folder|binary file|unreadable file} {name:text}",
    'the working directory has the folder "src"',
    'the working directory has the binary file "logo.png"',
    'the working directory has the unreadable file "secrets.txt"',
)
def _(policyctx_world: World, kind: str, name: str) -> None:
    """What cannot come back after a compaction."""
    path = _in_work(policyctx_world, name)
    if kind == "folder":
        path.mkdir()
        return
    path.write_bytes(b"\x89PNG\0")
    if kind == "unreadable file":
        path.chmod(0)


@given(
    "(the {where=working directory}|the root folder) has the link {name:text} to {target:text}",
    'the working directory has the link "a.py" to "../secret.txt"',
    'the root folder has the link "session-1" to "../elsewhere"',
)
def _(policyctx_world: World, name: str, target: str, where: str = "") -> None:
    """A symbolic link."""
    path = _in_work(policyctx_world, name) if where else policyctx_world.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@given(
    "the file {name:text} is deleted from the {where=working directory}",
    'the file "a.py" is deleted from the working directory',
)
@when(
    "the file {name:text} is deleted (from the {where=working directory}|from the root folder)",
    'the file "a.py" is deleted from the working directory',
    'the file "tool-result-a.md" is deleted from the root folder',
)
def _(policyctx_world: World, name: str, where: str = "") -> None:
    """Whoever has read or written it."""
    path = _in_work(policyctx_world, name) if where else policyctx_world.root / name
    path.unlink()


@given_or_when(
    "the agent has read the file(s) {names:names}( with {tool:name})",
    'the agent has read the file "src/a.py"',
    'the agent has read the files "a.py" and "b.py" with Read',
)
def _(policyctx_world: World, names: tuple[str, ...], tool: str = "read_file") -> None:
    """A call and its result for each, one after the other; the tool is `read_file`, and the path in
    the field of the policy's `reads_file`, else in `path`.
    """
    conversation = policyctx_world.conversation
    field = policyctx_world.policy.reads_file(tool) or "path"
    for name in names:
        result = ToolResult(f"call_{conversation.serial()}", f"what {name} held then", tool)
        call = conversation.call([(result.id, tool)], {field: name})
        policyctx_world.add([call, *conversation.answers([result])])


def _in_work(world: World, name: str) -> Path:
    path = world.work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@then(
    "the history is {state=compacted|not compacted}",
    "the history is compacted",
    "the history is not compacted",
)
def _(policyctx_world: World, state: str) -> None:
    """`Result.compacted` of the last event: whether a summary was made."""
    result = policyctx_world.outcome
    if result.compacted != (state == "compacted"):
        found = "it is" if result.compacted else f"it is not{_why_not(result)}"
        raise OutcomeError(f"the history to be {state}", found, policyctx_world.fates)


@then(
    "the summarizer is asked {times:amount} time(s)",
    "the summarizer is asked 3 times",
    "the summarizer is asked no time",
)
def _(policyctx_world: World, times: Amount) -> None:
    """Tries from the scenario's beginning on."""
    found = len(_scripted(policyctx_world).requests)
    if not times.holds_for(found):
        why_not = _why_not(policyctx_world.outcome)
        raise OutcomeError(f"{times} times", f"{found:,}{why_not}", policyctx_world.fates)


@then(
    "the summary is asked of {name:name}( with the model {model:name})",
    "the summary is asked of extractive",
    "the summary is asked of anthropic with the model claude-haiku-4-5",
)
def _(policyctx_world: World, name: str, model: str | None = None) -> None:
    """As `summary.by` and `model` say, though the scenario answers."""
    settings = _last_request(policyctx_world).settings
    if settings.by != name or model not in {None, settings.model}:
        raise OutcomeError(f"{name} {model or ''}".strip(), f"{settings.by} {settings.model}")


@then(
    "a try may take {each:amount} second(s), and all tries {total:amount} second(s)",
    "a try may take 60 seconds, and all tries at most 300 seconds",
)
def _(policyctx_world: World, each: Amount, total: Amount) -> None:
    """`summary.timeout` and `total_timeout` of a summary that was asked for."""
    settings = _last_request(policyctx_world).settings
    found = settings.timeout.seconds, settings.total_timeout.seconds
    if not each.holds_for(found[0]) or not total.holds_for(found[1]):
        raise OutcomeError(f"{each} and {total} seconds", f"{found[0]:g} and {found[1]:g}")


@then(
    "the summarizer (receives|is told) {text:text}",
    'the summarizer receives "at most 1200 words"',
)
def _(policyctx_world: World, text: str) -> None:
    """The instructions to the model have this text: of the sections, the rules, the length, or
    the files that come back.
    """
    request = _last_request(policyctx_world)
    history = request.history
    found = instructions(request.settings, history.restored, earlier=history.earlier.values())
    if text not in found:
        raise OutcomeError(repr(text), found)


@then(
    "the summarizer (sees {text:text}|does not see {other:text})",
    'the summarizer sees "Rename the field."',
    'the summarizer does not see "You are a helpful agent."',
)
def _(policyctx_world: World, text: str | None = None, other: str | None = None) -> None:
    """In the conversation that a model is asked to summarise."""
    request = _last_request(policyctx_world)
    found = transcript(recorded_parts(request.history, request.settings))
    if text is not None and text not in found:
        raise OutcomeError(repr(text), found)
    if other is not None and other in found:
        raise OutcomeError(f"no {other!r}", found)


@then(
    "(the file(s) {names:names}|no file) (is|are) restored",
    'the file "src/a.py" is restored',
    'the files "b.py" and "a.py" are restored',
    "no file is restored",
)
def _(policyctx_world: World, names: tuple[str, ...] = ()) -> None:
    """Exactly these after a compaction, in this order, by the paths of their calls."""
    made = _compacted(policyctx_world).replacement.written
    found = [one.path for one in made if one.path]
    if found != list(names):
        told = [", ".join(found) or "none", *policyctx_world.result.warnings]
        raise OutcomeError(", ".join(names) or "none", "\n".join(told))


@then(
    "the compaction reports",
    "the compaction reports\n| compacted_message_count | 4 |\n| restored_file_count | 1 |",
)
def _(policyctx_world: World, datatable: Table) -> None:
    """Values of `CompactStats`, each after its name, or a bound such as `over 100`. Where no
    compaction was made, all are 0 but those of `summary`, such as `summary.attempts`.
    """
    outcome = policyctx_world.outcome
    made = outcome if isinstance(outcome, Returned) else outcome.compaction
    stats = CompactStats(summary=outcome.summary_usage) if made is None else made.stats
    for name, expected in pairs_in(datatable):
        try:
            found = attrgetter(name)(stats)
        except AttributeError:
            raise WordingError(f"CompactStats has no {name!r}") from None
        if not amount(expected).holds_for(found):
            raise OutcomeError(f"{name}: {expected}", f"{name}: {found}")


@then(
    "the waits between the tries grow from {amount:amount} second(s)",
    "the waits between the tries grow from 1 second",
)
def _(policyctx_world: World, amount: Amount) -> None:
    """The first wait of the last event is this long, each further one at least one and a half times
    as long as the one before. It is `0 seconds` if the summarizer is asked again at once.
    """
    tries = len(_scripted(policyctx_world).requests) - policyctx_world.tries_before
    waits = policyctx_world.waits or [0] * (tries - 1)
    grow = all(_LEAST_GROWTH * one <= other for one, other in pairwise(waits))
    if len(waits) != tries - 1 or not waits or not amount.holds_for(waits[0]) or not grow:
        found = ", ".join(f"{wait:g}" for wait in waits) or "none"
        raise OutcomeError(f"{tries - 1} waits that grow from {amount} seconds", found)


@then(
    "the compaction reports the summary {text:text}",
    'the compaction reports the summary "Rename the field."',
)
def _(policyctx_world: World, text: str) -> None:
    """The whole summary in `Result.compaction`, or in a function's result."""
    outcome = policyctx_world.outcome
    made = outcome if isinstance(outcome, Returned) else _compacted(policyctx_world)
    found = made.summary
    if found != text:
        raise OutcomeError(repr(text), repr(found), policyctx_world.fates)


@then("the archive holds {items:items}", "the archive holds messages 2 to 5")
def _(policyctx_world: World, items: str) -> None:
    """The reported document has exactly the messages of these items, as they were given."""
    positions = sorted({fate.item.message for fate in policyctx_world.fates_of(items)})
    expected = [policyctx_world.last.before[position] for position in positions]
    outcome = policyctx_world.outcome
    made = outcome if isinstance(outcome, Returned) else None
    path = made.archive if made else _compacted(policyctx_world).archive_path
    if path is None:
        raise OutcomeError("an archive", "none")
    found = json.loads(bytes_of(Path(path)))["messages"]
    if found != expected:
        raise OutcomeError(compact(expected), compact(found))


@then("no archive is written")
def _(policyctx_world: World) -> None:
    """None below the root folder."""
    policyctx_world.require_event()
    root = policyctx_world.root
    if found := [path for path in policyctx_world.all_files() if _is_archive(root / path)]:
        raise OutcomeError("no archive", ", ".join(found))


@then("user and assistant take turns")
def _(policyctx_world: World) -> None:
    """The roles behind the system messages alternate, the user first. Results that follow each
    other are one turn, and so is an answer with its calls and reasoning.
    """
    messages = policyctx_world.last.messages
    roles = [_speaker(message) for message in messages]
    spoken = [
        (role, role != "tool" and "role" in message)
        for role, message in zip(roles, messages, strict=True)
        if role not in SYSTEM_ROLES
    ]
    is_doubled = any(one == other and one[1] for one, other in pairwise(spoken))
    if is_doubled or not spoken or spoken[0][0] != "user":
        raise OutcomeError("user, assistant, user, …", ", ".join(roles), policyctx_world.fates)


def _speaker(message: Message) -> str:
    """Return the role of a message; an item of the Responses API may have none."""
    by_type = "tool" if message.get("type") in OUTPUT_TYPES else "assistant"
    return str(message.get("role") or by_type)


def _is_archive(path: Path) -> bool:
    """Return whether a file, compressed or not, is the archive of a compaction."""
    try:
        document = json.loads(bytes_of(path))
    except ValueError:
        return False
    if not isinstance(document, dict):
        return False
    is_enveloped = document.get("item_type") == ARCHIVE_TYPE
    return is_enveloped or {"compaction", "messages"} <= document.keys()


def _compacted(world: World) -> Compacted:
    made = world.result.compaction
    if made is None:
        raise OutcomeError("a compaction", f"none{_why_not(world.result)}", world.fates)
    return made


def _why_not(result: Result | Returned) -> str:
    """A line for each reason that nothing was replaced: closed gates, kept messages, warnings."""
    found = [*result.warnings]
    for step in () if isinstance(result, Returned) else result.plan.outcomes:
        if step.stopped is not None:
            found.append(f"the step {step.step}: {step.stopped.sentence}")
        elif not step.is_open:
            found += [f"the step {step.step}: {gate.sentence}" for gate in step.gates]
    return "".join(f"\n{line}" for line in found)


def _scripted(world: World) -> ScriptedSummarizer:
    if world.summarizer is None:
        raise WordingError('no summarizer is given; write `Given the summarizer answers "…"`')
    return world.summarizer


def _last_request(world: World) -> SummaryRequest:
    requests = _scripted(world).requests
    if not requests:
        raise OutcomeError("a request for a summary", f"none{_why_not(world.outcome)}", world.fates)
    return requests[-1]
