"""Translates a generated page piece by piece, by a catalogue of its texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

_CODE = re.compile(r"`[^`]*`")
_CELL = re.compile(r"(?<!\\)\|")
# A remark behind the code of a line.
_REMARK = re.compile(r"(?<=\S  # ).+$", re.MULTILINE)
# The heading of a section about keys is their paths.
_PATHS = re.compile(r"[a-z_.]+(, [a-z_.]+)*")
# A key in a list: its names, its type and default, and its meaning.
_KEY = re.compile(r"( *- (?:`[^`]+`, )*`[^`]+`)(?: \(([^;]*?)(?:; (.*?))?\))?: (.*)")
# The meaning of a key that another section describes.
_AS_IN = re.compile(r"as in \[.*\]\(#.*\)")
# What differs between types of one form, such as lists of three words: words and the links to maps.
_HOLE = re.compile(r"`[^`]*`|(?<=\]\()#[^)]*")
_ANY = "…"


@dataclass(slots=True)
class Translation:
    """Translates the texts of one page, and keeps the texts that it has met.

    A text is a heading, a paragraph in one line, a cell of a table, or of a key in a list the type,
    the default or the meaning, or a remark in code. Other code stays. In a type, `…` in the
    catalogue stands for each code and each link target.
    """

    catalogue: dict[str, str]
    met: set[str] = field(default_factory=set)

    @property
    def missing(self) -> list[str]:
        """The texts of the page that the catalogue does not have."""
        return sorted(self.met - self.catalogue.keys())

    @property
    def unused(self) -> list[str]:
        """The texts of the catalogue that the page does not have."""
        return [text for text in self.catalogue if text not in self.met]

    def page(self, page: str) -> str:
        """Return the page translated; a text without a translation stays as it is."""
        return "\n\n".join(self._block(block) for block in page.rstrip("\n").split("\n\n")) + "\n"

    def _block(self, block: str) -> str:
        if block.startswith("    "):
            return _REMARK.sub(lambda remark: self._text(remark[0]), block)
        if block.startswith("|"):
            return "\n".join(map(self._row, block.splitlines()))
        if block.startswith("- "):
            return "\n".join(map(self._key, block.splitlines()))
        marks, text = re.findall(r"\A(#+ |)(.*)", block, re.DOTALL)[0]
        if marks and _PATHS.fullmatch(text):
            return block
        return f"{marks}{self._text(' '.join(text.split()))}"

    def _row(self, line: str) -> str:
        if line.startswith("|---"):
            return line
        cells = [self._text(cell.strip()) for cell in _CELL.split(line)[1:-1]]
        return f"| {' | '.join(cells)} |"

    def _key(self, line: str) -> str:
        [(names, type_, default, meaning)] = _KEY.findall(line)
        about = [self._type(type_), *([self._text(default)] if default else [])]
        typed = f" ({'; '.join(about)})" if type_ else ""
        reference, link, target = (
            meaning.partition(" [") if _AS_IN.fullmatch(meaning) else (meaning, "", "")
        )
        return f"{names}{typed}: {self._text(reference)}{link}{target}"

    def _type(self, cell: str) -> str:
        form, holes = _HOLE.sub(_ANY, cell), [*_HOLE.findall(cell), ""]
        parts = self._text(form).split(_ANY)
        if len(parts) != len(holes):
            message = f"the translation of this type needs {_ANY} as often as it: {form}"
            raise ValueError(message)
        return "".join(part + hole for part, hole in zip(parts, holes, strict=True))

    def _text(self, text: str) -> str:
        if not re.search(r"[A-Za-z]", _CODE.sub("", text)):
            return text
        self.met.add(text)
        return self.catalogue.get(text, text)


def catalogue_in(path: Path) -> dict[str, str]:
    """Return the catalogue in a YAML file: a list of maps, each with a text and its translation.

    Raises `ValueError` for a text that has two translations.
    """
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    catalogue: dict[str, str] = {}
    for entry in entries:
        if entry["en"] in catalogue:
            message = f"{path.name} has two translations of: {entry['en']}"
            raise ValueError(message)
        catalogue[entry["en"]] = entry["zh"]
    return catalogue
