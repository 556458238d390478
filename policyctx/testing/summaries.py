"""What a scenario says of summaries and of the files that an agent reads."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from policyctx.compaction.assembly import SummaryRequest
from policyctx.compaction.restoration import WorkingFiles
from policyctx.compaction.summarizers import ModelSummarizer
from policyctx.errors import SummaryError, UnrestorableFileError

_READABLE = 0o444
_LONGEST_WAIT = 10


@dataclass(slots=True)
class ScriptedSummarizer:
    """Answers with `text` once it has failed `failures` times, and keeps what it was asked.

    One that `hangs` answers after ten seconds.
    """

    text: str = "The summary."
    failures: float = 0
    why: str = "scripted"
    hangs: bool = False
    requests: list[SummaryRequest] = field(default_factory=list)

    def summarize(self, request: SummaryRequest) -> str:
        """Return the text; raises `SummaryError` while it is to fail."""
        self.requests.append(request)
        if self.hangs:
            Event().wait(_LONGEST_WAIT)
        if self.failures > 0:
            self.failures -= 1
            raise SummaryError(self.why)
        return self.text


class ScriptedModel(ScriptedSummarizer, ModelSummarizer):
    """A `ScriptedSummarizer` whose answers are those of a language model."""


@dataclass(frozen=True, slots=True)
class FilesBelow:
    """A `FileReader` of a real disk; a relative working directory is one below `folder`."""

    folder: Path

    def resolve(self, path: str, work_dir: str) -> str:
        """Return the absolute path that `path` leads to; raises `UnrestorableFileError`."""
        return WorkingFiles().resolve(path, os.fspath(self.folder / work_dir))

    def read(self, resolved: str, most_bytes: int) -> str:
        """Return the text of a file; raises `UnrestorableFileError`.

        What nobody has a right to read is not read, even where the tests are run by the superuser.
        """
        if Path(resolved).exists() and not Path(resolved).stat().st_mode & _READABLE:
            raise UnrestorableFileError(resolved, "there is no permission to read it")
        return WorkingFiles().read(resolved, most_bytes)
