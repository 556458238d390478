"""A compaction as a part of a turn: summarise, restore files, archive, replace.

Messages are replaced only after a summary is accepted and the messages are saved. A failure leaves
the list unchanged, and a warning says why.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from operator import is_
from time import monotonic
from typing import Literal, NamedTuple, cast

from policyctx.compaction import assembly
from policyctx.compaction.assembly import FileReader, RestoredFile
from policyctx.compaction.file_access import accesses, unknown_readers
from policyctx.compaction.restoration import Restoration, WorkingFiles
from policyctx.compaction.summarizers import Summarizer, Worker
from policyctx.definitions.items import ARCHIVE_TYPE, Author, Item, Message
from policyctx.definitions.names import NONE
from policyctx.errors import StoreError, UnrestorableFileError
from policyctx.messages.door import Door
from policyctx.messages.editing import SessionRequest
from policyctx.messages.reading import Reading
from policyctx.messages.shapes.built_in import TEXTS
from policyctx.messages.shapes.shape import head_of
from policyctx.messages.sources import Sources, indices, joined, within
from policyctx.messages.validity import new_problems
from policyctx.planning.compact import Replacing
from policyctx.planning.decisions import Reason
from policyctx.planning.facts import Added, Facts, Request
from policyctx.planning.ledger import ItemKey
from policyctx.planning.placeholders import content_hash
from policyctx.policy.models import Policy
from policyctx.policy.models.compaction import Summary
from policyctx.store.content import Content, Origin
from policyctx.turns.effects import BeforeCompaction, CompactionAhead, Remember, Save, Turn
from policyctx.turns.known_list import KnownList
from policyctx.turns.replacement import Replaced, Replacement, digest_of_traces
from policyctx.turns.replacements import Replacements
from policyctx.turns.result import Compacted, NotCompacted
from policyctx.turns.summarising import AskBefore, ReadFiles, Summarised, Summarising

_WRITTEN_ROLES = ("user", "assistant")
# The requirements ask for a list that ends so if nothing behind the summary stays.
_ENDS_ON_REPLY = "the list ends with an assistant message"
# The files of a compaction have this share of the time that its summary has, and at least so many
# seconds.
_FILES_SHARE, _LEAST_SECONDS = 1 / 6, 2.0


class _InTime:
    """Reads files in one thread, in at most so many seconds for all of them.

    A call that takes longer is left behind, and nothing is called after it.
    """

    def __init__(self, reader: FileReader, seconds: float) -> None:
        self._reader, self._seconds = reader, seconds
        self._ends: float | None = None
        self._worker = Worker()

    def close(self) -> None:
        """Let the thread end."""
        self._worker.close()

    def resolve(self, path: str, work_dir: str) -> str:
        """Return the path of the reader; raises `UnrestorableFileError` without time."""
        return self._called(path, partial(self._reader.resolve, path, work_dir))

    def read(self, resolved: str, most_bytes: int) -> str:
        """Return the text of the reader; raises `UnrestorableFileError` without time."""
        return self._called(resolved, partial(self._reader.read, resolved, most_bytes))

    def _called(self, path: str, function: Callable[[], str]) -> str:
        if self._ends is None:
            self._ends = monotonic() + self._seconds
        left = self._ends - monotonic()
        try:
            outcome = self._worker.call(function).result(left) if left > 0 else None
        except TimeoutError:
            outcome = None
        if outcome is None:
            why = f"the files were not read within {round(self._seconds, 1):g} s"
            raise UnrestorableFileError(path, why)
        if outcome.error is not None:
            raise outcome.error
        return cast("str", outcome.value)


class _WithoutSecrets(NamedTuple):
    """Reads files as messages are read: without the secrets of the policy."""

    reader: FileReader
    door: Door

    def resolve(self, path: str, work_dir: str) -> str:
        """Return the path of the reader."""
        return self.reader.resolve(path, work_dir)

    def read(self, resolved: str, most_bytes: int) -> str:
        """Return the text of the reader without secrets."""
        return self.door.text(self.reader.read(resolved, most_bytes))


class Compacting:
    """One compaction of the list of a turn, after the turn's other decisions were carried out.

    `settings` are those of the whole policy. `reader` reads the restored files, by default from
    the disk. `hook` is asked first whether the compaction may be made.
    """

    def __init__(
        self,
        known: KnownList,
        replacing: Replacing,
        facts: Facts,
        earlier: Replacements,
        *,
        settings: Policy,
        summarizer: Summarizer,
        reader: FileReader | None,
        door: Door,
        request: Request,
        hook: BeforeCompaction | None = None,
        writes_fail: bool = False,
    ) -> None:
        self._known, self._replacing, self._facts = known, replacing, facts
        self.reading: Reading | None = None
        """Of the list in which the messages are replaced."""
        self._writes_fail = writes_fail
        self._hook = hook
        self._earlier, self._request = earlier, request
        self._conversation = known.conversation
        self._policy = self._conversation.policy
        self._shapes = self._conversation.reading.shapes
        self._store, self._model = settings.store, settings.model
        self._settings = replacing.settings
        seconds = max(_LEAST_SECONDS, self._settings.summary.total_timeout.seconds * _FILES_SHARE)
        self._in_time = _InTime(WorkingFiles() if reader is None else reader, seconds)
        self._reader: FileReader = self._in_time
        if not door.is_open:
            self._reader = _WithoutSecrets(self._reader, door)
        self._summarizer = summarizer
        self._parts = replacing.parts
        # Texts that an earlier summary carries over stay pinned.
        self._pinned = tuple(dict.fromkeys([*earlier.pinned, *replacing.pinned]))
        left = known.left
        self._rest = [m for i in self._parts if (m := left[i]) is not None]
        around = self._parts.around
        self._kept = [m for i in around.before if (m := left[i]) is not None]
        self._after = [m for i in around.after if (m := left[i]) is not None]
        self._before = [m for m in left[: self._parts.start] if m is not None]
        replaced = (known.given[i] for i in self._there() if i >= self._parts.start)
        self._shape = self._shapes.writing([*replaced])
        carried = [left[i] for i in around.behind]
        self._behind = [m for m in [*carried, *left[self._parts.end :]] if m is not None]

    def run(self) -> Turn[Compacted | NotCompacted]:
        """Make the compaction; raises `StoreError` under `on_failure: raise`.

        Raises `ShapeError` before a summary is asked for if the shape cannot write its message.
        """
        for role in _WRITTEN_ROLES:
            self._shape.written(role, "a summary")
        if self._hook is not None and (why := (yield from self._ask(self._hook))) is not None:
            return NotCompacted((f"not compacted: {why.sentence}",), assembly.SummaryUsage(), why)
        if self._writes_fail:  # a summary that cannot be kept would be paid for at every call
            try:
                yield from self._try_to_write()
            except StoreError as error:
                if self._store.on_failure == "raise":
                    raise
                return NotCompacted(
                    (), assembly.SummaryUsage(), Reason("not_saved", {"error": str(error)})
                )
        # The files are read first, so that the summary need not repeat what they show.
        files = self._files()
        try:
            restoration = self._fitting((yield from files.ask()))
        finally:
            self._in_time.close()
        summarised = yield from self._summarising(restoration).run()
        if summarised.text is None:
            too_large = summarised.too_large
            return NotCompacted(summarised.warnings, summarised.usage, refused=too_large)
        unread = () if files.accessed else self._unread()
        try:
            made = yield from self._replace(summarised.text, summarised, restoration, *unread)
        except StoreError as error:
            if self._store.on_failure == "raise":
                raise
            made = str(error)
        if isinstance(made, str):
            return NotCompacted((*summarised.warnings, f"not compacted: {made}"), summarised.usage)
        return made

    def _try_to_write(self) -> Turn[None]:
        """Write the archive, which is used again when it is saved, or a record without a meaning.

        Raises `StoreError`.
        """
        if self._settings.archive:
            yield from Save((self._archive(),), recorded=self._store.keeps_state).ask()
        elif self._store.keeps_state:
            yield from Remember(({"record": "attempt"},)).ask()

    def _ask(self, hook: BeforeCompaction) -> Turn[Reason | None]:
        """Ask the caller's hook, and return why the compaction is not made."""
        ahead = CompactionAhead(
            session_id=self._facts.session_id,
            step=self._replacing.step,
            messages=tuple(self._rest),
            tokens=self._replacing.tokens,
            first=self._parts.start,
            last=self._parts.end - 1,
        )
        return (yield from AskBefore(hook, ahead).ask())

    def _replace(
        self, summary: str, summarised: Summarised, restoration: Restoration, *unread: str
    ) -> Turn[Compacted | str]:
        """Replace the history by the summary and the files, or return why that is not valid."""
        archive = None
        if self._settings.archive:
            contents = (self._archive(),)
            [archive] = yield from Save(contents, recorded=self._store.keeps_state).ask()
        archive_path = archive.path if archive else ""
        restoration = self._fitting(restoration, summary, archive_path)
        written = self._written(summary, restoration.files, archive_path)
        first, *more = (self._shape.written(one.role, one.text) for one in written)
        messages = [*self._before, *self._kept, first, *self._after, *more, *self._behind]
        self.reading = Reading(self._shapes, messages)
        if wrong := self._problems(messages, self.reading.items):
            return f"the list would not be valid: {wrong}"
        replacement = self._replacement(
            written, summary, archive.relative_path if archive else None
        )
        if self._store.keeps_state:
            yield from Remember((replacement.record(),)).ask()
        return Compacted(
            self._replaced(messages, len(written)),
            replacement,
            summary,
            self._stats(self.reading.items, restoration, summarised.usage),
            archive.path if archive else None,
            (*summarised.warnings, *restoration.warnings, *unread),
            self._added(written),
        )

    def _added(self, written: Sequence[assembly.WrittenMessage]) -> Added:
        """Return the sizes of messages that the compaction writes."""
        facts, count = self._facts, len(written)
        tokens = sum(facts.length(one.text, "tokens") for one in written)
        turns = sum(one.role == "user" for one in written)
        return Added(tokens + facts.tokens_around(count), count, turns)

    def _replaced(self, messages: list[Message], written: int) -> Replaced:
        sources, known = self._sources(written), self._known
        edited = known.edited_positions
        kept = {i: at for at, i in enumerate(indices(sources)) if i in edited and i is not None}
        places = {kept[i]: left for i, left in known.places_left(kept).items()}
        return Replaced(messages, sources, places)

    def _sources(self, written: int) -> Sources:
        parts, there = self._parts, self._known.sources
        kept, after, carried = ((range(i, i + 1) for i in places) for places in parts.around)
        places = (
            [range(parts.start), *kept],
            after,
            [*carried, range(parts.end, len(self._known.given))],
        )
        earlier, middle, later = ([within(there, one) for one in group] for group in places)
        return joined(chain(*earlier, [None], *middle, repeat(None, written - 1), *later))

    def _summarising(self, restoration: Restoration) -> Summarising:
        settings = self._summary_settings()
        request = assembly.SummaryRequest(
            self._history(restoration),
            settings,
            self._facts.counter,
            self._pinned,
            in_place=self._session_request() if settings.reuse_cache else None,
        )
        return Summarising(
            self._summarizer,
            request,
            self._replacing.tokens,
            self._model.price if settings.price is None else settings.price,
        )

    def _summary_settings(self) -> Summary:
        """Return the settings of the summary, with the model that is asked."""
        settings, name = self._settings.summary, self._model.name
        if not settings.reuse_cache or "model" in settings.model_fields_set or name is None:
            return settings
        return settings.model_copy(update={"model": name})

    def _session_request(self) -> SessionRequest:
        """Return the request of the session up to the end of what is summarised."""
        there = self._known.left[: self._parts.end]
        messages = [m for m in there if m is not None]
        return SessionRequest(messages, self._request.system, self._request.tools)

    def _history(self, restoration: Restoration) -> assembly.History:
        tools = {item.tool for item in self._conversation.items if item.tool is not None}
        summaries = {i: text for i, m in enumerate(self._rest) if (text := self._summary_in(m))}
        parts, left = self._parts, self._known.left
        there = [i for i in parts if left[i] is not None]
        written = {
            place for place, message in enumerate(there) if self._conversation.is_written(message)
        }
        return assembly.History(
            messages=self._rest,
            earlier=summaries,
            written=frozenset(written - summaries.keys()),
            reads_file={
                tool: fields for tool in tools if (fields := self._policy.path_fields(tool))
            },
            restored={file.path: file.content for file in restoration.files},
            shapes=self._shapes,
            archive=self._archive_name if self._settings.archive else "",
            author_of=self._author_of(),
        )

    def _author_of(self) -> Callable[[Item], Author | Literal[""]]:
        """Return what says who wrote an item; a result that was offloaded says nothing itself."""
        conversation, policy = self._conversation, self._policy
        ids = (conversation.items[position].tool_use_id for position in conversation.fates)
        gone = frozenset(one for one in ids if one is not None)

        def author_of(item: Item) -> Author | Literal[""]:
            return "" if item.tool_use_id in gone else policy.author_by_text(item)

        return author_of

    def _summary_in(self, message: Message) -> str | None:
        """Return the earlier summary in a message, known by its record or its wording."""
        return self._said(message, "compaction_summary", self._earlier.summaries)

    def _said(self, message: Message, item_type: str, known: Mapping[str, str]) -> str | None:
        # Most messages are none of the user: their parts need not be read.
        if self._shapes.role(message) != "user" or (text := self._shapes.text(message)) is None:
            return None
        if text in known:
            return known[text]
        left = self._policy.compaction_forms.left(text)
        return left.says if left is not None and left.item_type == item_type else None

    def _files(self) -> ReadFiles:
        restored = self._earlier.restored

        def path_in(message: Message) -> str | None:
            return self._said(message, "restored_file", restored)

        settings, policy, shapes = self._settings.restore, self._policy, self._shapes
        if not (settings.max_files or settings.always):
            return ReadFiles((), settings, self._facts.counter, frozenset(), self._reader)
        before = [*self._before, *self._rest]
        # An edit does not show its file, so an edited file still comes back.
        whole = [source for source in settings.sources if source != "edited"]
        visible = accesses(self._behind, policy, path_in, shapes, whole)
        changed = (
            accesses(self._behind, policy, path_in, shapes, settings.sources)
            if len(whole) < len(settings.sources)
            else []
        )
        found = accesses(before, policy, path_in, shapes, settings.sources)
        return ReadFiles(
            (*visible, *changed, *found),
            settings,
            self._facts.counter,
            frozenset(access.path for access in visible),
            self._reader,
        )

    def _unread(self) -> Iterator[str]:
        """Yield a warning if no file is restored because no tool is known to read files."""
        if not self._settings.restore.max_files:
            return
        messages = [*self._before, *self._rest]
        found = unknown_readers(messages, self._policy, self._shapes)
        if not found:
            return
        tool, field = next(iter(found.items()))
        yield (
            f"no file is restored: no known tool has read one, but {tool!r} was called with a path "
            f"in {field!r}; if it reads files, say so with `tools: {{{tool}: {{reads_file: "
            f'{field}}}}}` in the policy, or `reads_file={{"{tool}": "{field}"}}` of '
            "`compact_messages`"
        )

    @property
    def _number(self) -> int:
        return len(self._earlier.made) + 1

    @property
    def _archive_name(self) -> str:
        return assembly.archive_name(self._number)

    def _archive(self) -> Content:
        """Return all replaced messages as the caller gave them, and one that is carried over."""
        replaced = self._known.given[self._parts.start : self._parts.end]
        name = self._archive_name
        path = f"{ARCHIVE_TYPE}/{name}.json"
        origin = Origin(name, ARCHIVE_TYPE)
        return Content(
            path, assembly.Archive(self._number, replaced, self._shapes), path, origin, packed=True
        )

    def _written(
        self, summary: str, files: Sequence[RestoredFile], archive_path: str
    ) -> list[assembly.WrittenMessage]:
        role, last = self._shapes.role, self._rest[-1:]
        follows = role(self._behind[0]) == "assistant" if self._behind else False
        if not self._behind and self._shapes.writing(last).alternates:
            follows = role(last[0]) != "assistant"  # the model replies next
        return assembly.assembled(
            summary,
            files,
            self._settings.wording,
            archive_path=archive_path,
            read_tool=self._facts.read_tool,
            before_assistant=follows,
            is_all_told=self._settings.summary.by == NONE,
        )

    def _fitting(
        self, restoration: Restoration, summary: str = "", archive_path: str = ""
    ) -> Restoration:
        """Return the files, the newest first, with which the gate on tokens stays closed."""
        left = self._replacing.left
        if not (self._settings.restore.within_gate and left.verdicts and restoration.files):
            return restoration
        files: list[RestoredFile] = []
        warnings = [*restoration.warnings]
        for file in restoration.files:
            written = self._written(summary, [*files, file], archive_path)
            opened = left.still_open(self._added(written))
            if any(verdict.gate == "tokens" for verdict, _ in opened):
                why = (
                    f"its {file.tokens} tokens do not fit under the gate of {self._replacing.step}"
                )
                warnings.append(f"{file.path!r} is not restored: {why}")
            else:
                files.append(file)
        return restoration._replace(files=tuple(files), warnings=tuple(warnings))

    def _problems(self, messages: Sequence[Message], new: Sequence[Item]) -> str:
        left, given = self._known.left, self._known.given
        before = [message for message in left if message is not None]
        # Of a list without an edit the items are known.
        items = self._conversation.reading.items if all(map(is_, left, given)) else None
        found = new_problems(before, messages, items, self._shapes, new)
        return "; ".join(p for p in found if p != _ENDS_ON_REPLY or self._behind)

    def _there(self) -> list[int]:
        """Return the positions up to the end of what is replaced of messages not removed."""
        return [i for i in range(self._parts.end) if i not in self._conversation.removed]

    def _replacement(
        self, written: list[assembly.WrittenMessage], summary: str, archive: str | None
    ) -> Replacement:
        parts, conversation = self._parts, self._conversation
        drops, held = len(conversation.ledger.drops), conversation.held_before(parts.end)
        there = self._there()
        replaced = [i for i in there if i >= parts.start]
        head = head_of(conversation.roles[i] for i in there)
        return Replacement(
            skipped=max(0, len(there) - len(replaced) - head),
            count=len(replaced),
            sha256=digest_of_traces(map(conversation.trace, replaced), drops, held),
            written=tuple(written),
            summary=summary,
            pinned=self._pinned,
            gone=(*conversation.known_keys(parts), *self._written_before()),
            step=self._replacing.step,
            archive=archive,
            carried=None if parts.carried is None else replaced.index(parts.carried),
            kept=tuple(map(replaced.index, parts.kept)),
            ends_list=not self._behind,
            drops=drops,
            held=held,
        )

    def _written_before(self) -> Iterator[ItemKey]:
        """Yield what was dropped of the messages that the replaced compactions wrote."""
        if not self._earlier.made:
            return
        places = map(self._conversation.items_of, range(self._parts.start, self._parts.end))
        alone = (self._conversation.reading.items[one.start] for one in places if len(one) == 1)
        texts = {item.text for item in alone if item.kind in TEXTS}
        written = ([m.text for m in one.written] for one in self._earlier.made)
        replaced = chain(*(each for each in written if not texts.isdisjoint(each)))
        hashes = set(map(content_hash, replaced))
        yield from (key for key in self._conversation.gone_before if key.sha256 in hashes)

    def _stats(
        self, items: Sequence[Item], restoration: Restoration, usage: assembly.SummaryUsage
    ) -> assembly.CompactStats:
        facts = self._facts
        after = sum(facts.tokens(item) for item in items if item.inside is None)
        return assembly.CompactStats(
            original_token_count=self._conversation.tally("tokens").total,
            compacted_token_count=after,
            compacted_message_count=len(self._rest),
            retained_message_count=sum(
                map(len, (self._before, self._kept, self._after, self._behind))
            ),
            restored_file_count=len(restoration.files),
            restored_token_count=sum(file.tokens for file in restoration.files),
            summary=usage,
        )
