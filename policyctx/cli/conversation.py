"""MESSAGES: from a file or stdin to the request that is in it."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from policyctx.cli.output import console
from policyctx.definitions.items import Message
from policyctx.errors import MessagesError, UnreadableRecordingError, counted
from policyctx.messages.asked import model_name
from policyctx.messages.reading import Reading, RequestBody, request_of
from policyctx.messages.shapes.built_in import BUILT_IN, RESPONSES
from policyctx.planning.facts import Request, has_unknown_window, window_of
from policyctx.replay.cost import learnt
from policyctx.replay.readers.registered import LISTS
from policyctx.replay.reading import recordings_of, unread_in_words
from policyctx.replay.recording import ModelCall, Recording
from policyctx.replay.terms import called_window
from policyctx.resources import open_file
from policyctx.session import Session

_LISTED = 50
_NO_CALLS = "--call needs a recording with calls of a model"


@dataclass(frozen=True, slots=True)
class RecordedChoice:
    """Which session of a file is meant, and which call of it; the first and its end by default."""

    session: str | None = None
    """Its name, the part of the name after `#`, or its number from 1 on."""
    call: int | None = None
    """Counted from 1."""
    partial: bool = False
    """Whether a file is read of which much is not understood."""


@dataclass(frozen=True, slots=True)
class Given:
    """What MESSAGES hold: a request, and the recording that it is from, if it is from one."""

    request: RequestBody
    recording: Recording | None = None
    """Cut at the chosen call, if one was chosen."""
    learns_from: int = 0
    """The number of recorded calls before the request."""
    whole: Recording | None = None
    """The recording with the calls from the chosen one on; None where it is `recording`."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """What of the whole file is not understood: how often, by what it is."""

    @property
    def messages(self) -> Sequence[Message]:
        """The list that the call is made with."""
        return self.request.messages

    @property
    def is_compacted(self) -> bool:
        """Whether a compaction of the recorded agent replaced what was before."""
        calls = self.recording.calls if self.recording else ()
        return any(call.why_anew == "compaction" for call in calls)

    @property
    def system(self) -> object:
        """The system prompt beside the messages; of a recording, its last call's."""
        return self.request.system if self._last is None else self._last.system

    @property
    def tools(self) -> object:
        """The schemas of the tools on offer; of a recording, those of its last call."""
        return self.request.tools if self._last is None else self._last.tools

    def teach(self, session: Session, *, quiet: bool = False) -> Request:
        """Let a session know what was billed for the calls before, and return what is sent.

        The window is that of `called_window`, as in a replay. If it is not `model.context_window`
        and the policy has shares of it, stderr says so, unless all is to be `quiet`. So it does if
        calls were billed more than the window.
        """
        recording, name = self.recording, self._named(session)
        window = self._window(session)
        takes = self.request.takes_markers
        asked = Request(self.system, self.tools, name, window, takes_markers=takes)
        own = session.policy.model.context_window
        told = self._last is not None and self._last.window is not None
        is_unknown = not told and has_unknown_window(session.policy.model, name)
        if (is_unknown or window != own) and session.policy.asks_for_window and not quiet:
            _note(
                f"the window of {name} is not known: {window:,} tokens are assumed;"
                " model.context_window sets it"
                if is_unknown
                else f"gates see the window of {name}, {window:,} tokens;"
                " model.context_window in the policy would replace it"
            )
        if recording is None or not recording.calls:
            return asked
        facts = session.plan([], request=Request(window=window)).facts
        whole = self.whole or recording
        correction = learnt(whole, self.learns_from, facts)
        if correction.last is not None:
            usages = [call.usage for call in whole.calls[: self.learns_from] if call.usage]
            ttls = [ttl for usage in usages if (ttl := usage.write_ttl) is not None]
            session.take_over(correction, write_ttl=ttls[-1] if ttls else 0)
        session.take_over(idle=self.pause)
        over = [size for size in _billed(recording) if size > window]
        if over and not quiet:
            calls = "call was" if len(over) == 1 else "calls were"
            which = "model.context_window" if window == own else f"the window of {name}"
            _note(
                f"{len(over):,} recorded {calls} billed more than {which},"
                f" {window:,} tokens; the largest {max(over):,}"
            )
        return asked

    def document_with(self, request: RequestBody, messages: Sequence[Message]) -> object:
        """Return the new messages as a document; of a recording, with the name of its model."""
        name = self._last and self._last.language_model
        if not name:
            return request.document_with(messages)
        key = "input" if BUILT_IN.writing(messages) is RESPONSES else "messages"
        return {"model": name, key: list(messages)}

    def report(self, session: Session) -> dict[str, Any]:
        """Return which recording was read as plain values, for `--json`."""
        recording = self.recording
        if recording is None or not recording.calls:
            return {"recording": None}
        sizes = list(_billed(recording))
        window = self._window(session)
        return {
            "recording": {
                "name": recording.name,
                "format": recording.format,
                "model": self._named(session),
                "calls": len(recording.calls),
                "calls_with_usage": len(sizes),
                "calls_with_summed_usage": _summed(recording),
                "largest_billed": max(sizes, default=None),
                "context_window": window,
                "calls_over_window": sum(size > window for size in sizes),
                "not_understood": dict(self.unread),
            }
        }

    def _named(self, session: Session) -> str | None:
        """Return the name of the model that is called; None if nothing names one."""
        body, last = self.request.body, self._last
        named = body.get("model") if body is not None else last and last.language_model
        return model_name(named, session.policy.model.name)

    def _window(self, session: Session) -> int:
        model, name, last = session.policy.model, self._named(session), self._last
        return window_of(model, name) if last is None else called_window(last, model, name, last.at)

    @property
    def pause(self) -> float | None:
        """The seconds between the chosen call and the one before it; None if one has no time."""
        if self.whole is None or not self.learns_from:
            return None
        before, now = (call.at for call in self.whole.calls[self.learns_from - 1 :][:2])
        return None if before is None or now is None else max(0.0, now - before)

    @property
    def _last(self) -> ModelCall | None:
        """The last call of a recording that is not a request by itself."""
        if self.request.body is not None or self.recording is None or not self.recording.calls:
            return None
        return self.recording.calls[-1]


def _note(sentence: str) -> None:
    console(stderr=True).print(f"note: {sentence}")


def _summed(recording: Recording) -> int:
    """Return how many of the calls have no more than a share of a sum that was billed."""
    if recording.bill is None or not recording.bill.usage.prompt:
        return 0
    made = recording.calls[: recording.bill.calls]
    return sum(call.usage is None or not call.usage.prompt for call in made)


def _billed(recording: Recording) -> Iterator[int]:
    for call in recording.calls:
        if call.usage is not None and call.usage.prompt:
            yield call.usage.prompt


def read_messages(
    messages: str, choice: RecordedChoice | None = None, *, quiet: bool = False
) -> Given:
    """Read a message list, a request body or a recording; `-` is stdin.

    The content shows which it is, not the name. Where the file holds several sessions and none was
    chosen, the first is read and stderr says so, unless all is to be `quiet`; so it does for a
    request body of which a part of the history is not read, for records that are not understood,
    and for calls without a result and results without a call. Raises
    `MessagesError`, its text led by the file's name, also for a session or call that is not there.
    """
    name = "stdin" if messages == "-" else messages
    try:
        given = _read(_content(messages), name, choice or RecordedChoice(), quiet=quiet)
    except MessagesError as error:
        raise MessagesError(f"{name}: {error}", index=error.index) from error
    if given.unread and not quiet:
        _note(f"{name}: not understood: {unread_in_words(given.unread)}")
    for note in () if quiet else (*given.request.notes, *_lone(given.messages)):
        _note(note)
    return given


def _lone(messages: Sequence[Message]) -> Iterator[str]:
    """Say how many results have no call, and how many calls before the newest reply no result."""
    reading = Reading()
    reading.extend(messages)
    lone = [item for i, item in enumerate(reading.items) if i not in reading.partners]
    calls = [one for one in lone if one.kind == "tool_call" and one.message < reading.before_reply]
    results = [one for one in lone if one.kind == "tool_result"]
    if calls:
        yield f"no result for {counted(len(calls), 'call')} of a tool in the list"
    if results:
        yield f"no call for {counted(len(results), 'result')} of a tool in the list"


def _content(messages: str) -> bytes:
    try:
        if messages == "-":
            return sys.stdin.buffer.read()
        with open_file(Path(messages), allow_pipe=True) as file:
            return file.read()
    except OSError as error:
        raise MessagesError(f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise MessagesError(f"cannot be read: {error}") from error


def _read(content: bytes, name: str, choice: RecordedChoice, *, quiet: bool) -> Given:
    try:
        recording, unread = _recording(content, name, choice, quiet=quiet)
    except UnreadableRecordingError as error:
        return _request_without(error, content, choice)
    if choice.call is not None:
        return _at_call(recording, choice.call, unread)
    whole = Given(RequestBody(recording.messages()), recording, len(recording.calls), unread=unread)
    if recording.format not in LISTS or choice.session is not None:
        return whole
    # A document that is a request by itself keeps what is around its messages.
    try:
        return replace(whole, request=_request(content))
    except _NotARequestError as error:
        if error.is_json and unread and not choice.partial:
            raise
        return whole


def _request_without(
    error: UnreadableRecordingError, content: bytes, choice: RecordedChoice
) -> Given:
    """Return the request in a document, or raise why it is neither that nor a recording."""
    if not content.strip():
        raise MessagesError("it is empty") from error
    is_list = error.is_other or error.format in LISTS
    if is_list and choice.session is not None:
        raise MessagesError("--session needs a recording") from error
    if is_list and choice.call is not None:
        raise MessagesError(_NO_CALLS) from error
    if not is_list or error.is_seen:
        raise MessagesError(error.why) from error
    try:
        request = _request(content)
    except _NotARequestError as other:
        more = "" if other.index is not None else f"; nor is it a known recording: {error.why}"
        raise MessagesError(f"{other}{more}", index=other.index) from error
    if not error.is_other:
        raise MessagesError(error.why) from error
    return Given(request)


def _at_call(recording: Recording, call: int, unread: Mapping[str, int]) -> Given:
    if not recording.calls:
        raise MessagesError(_NO_CALLS)
    calls = len(recording.calls)
    if not 1 <= call <= calls:
        raise MessagesError(f"{recording.name} has {counted(calls, 'call')}; there is no {call}")
    cut = recording.until(call)
    return Given(RequestBody(cut.messages()), cut, call - 1, recording, unread)


class _NotARequestError(MessagesError):
    """A document is not a request; `is_json` says whether it is JSON at all."""

    def __init__(self, text: str, *, index: int | None = None, is_json: bool = True) -> None:
        super().__init__(text, index=index)
        self.is_json = is_json


def _request(content: bytes) -> RequestBody:
    try:
        return request_of(json.loads(content.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        where = f"byte {error.start} cannot be read"
        raise _NotARequestError(f"not UTF-8: {where}", is_json=False) from error
    except RecursionError as error:
        raise MessagesError("nested too deeply to be a message list") from error
    except MessagesError as error:
        raise _NotARequestError(str(error), index=error.index) from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _NotARequestError(f"not JSON: {where}: {error.msg}", is_json=False) from error
    except ValueError as error:
        raise MessagesError(f"not JSON: {error}") from error


def _recording(
    content: bytes, name: str, choice: RecordedChoice, *, quiet: bool
) -> tuple[Recording, Mapping[str, int]]:
    """Return the chosen recording, and what of the whole file is not understood."""
    path = None if name == "stdin" else Path(name)
    found = recordings_of(content, Path(name).name, path=path, partial=choice.partial)
    unread: Counter[str] = Counter()
    kept: list[Recording] = []
    for number, recording in enumerate(found):
        unread += Counter(recording.not_understood)
        if number == 0 or choice.session is not None:
            kept.append(recording)
    if choice.session is not None:
        return _chosen(kept, choice.session), unread
    [first] = kept
    if number and not quiet:
        several = (
            f"{name} holds several recordings; this is the first, {first.name};"
            " --session NAME reads another, --session ? lists them"
        )
        console(stderr=True).print(several)
    return first, unread


def _chosen(found: list[Recording], session: str) -> Recording:
    """Return the recording of this name, of this part after `#`, or of this number from 1 on."""
    for recording in found:
        if recording.name == session:
            return recording
    for recording in found:
        if recording.name.partition("#")[2] == session:
            return recording
    if session.isdecimal() and 1 <= int(session) <= len(found):
        return found[int(session) - 1]
    listed = [f"{one.name} ({counted(len(one.calls), 'call')})" for one in found[:_LISTED]]
    if len(found) > _LISTED:
        listed.append(f"{len(found) - _LISTED:,} more")
    wanted = "" if session == "?" else f"no session {session!r}; "
    raise MessagesError(f"{wanted}its sessions are {', '.join(listed)}")
