"""Presets as records: what reading their texts gives, kept beside them as JSON.

The file of a preset names the texts that it was made from by their hashes. When one of them is
another by now, or the environment sets a variable that one of them names, the preset is read.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self, TypeVar, cast

from pydantic import BaseModel

from policyctx.definitions.gates import Comparison, Gate
from policyctx.definitions.items import PlainValue
from policyctx.errors import PolicyError
from policyctx.policy.loading import extended, parsed_policy
from policyctx.policy.models import Policy
from policyctx.policy.sources import PolicySource, environment, read_source
from policyctx.policy.values import DERIVED, ByteSize, Duration, Share
from policyctx.resources import shipped_folder

M = TypeVar("M")
R = TypeVar("R", bound="Record")

_MODELS = "policyctx.policy.models"
# What a model says about its keys, by the name of the class that says it.
NOTES: dict[str, type[Comparison | Gate]] = {"Comparison": Comparison, "Gate": Gate}


class RecordKind(NamedTuple):
    """One model of the language, as records know it."""

    path: str
    """The module below the models and the name of the class, such as `steps.Step`."""
    defaults: Mapping[str, Any]
    """The values of the keys that a policy may leave out."""
    notes: Mapping[type, Mapping[str, Any]]
    """What the model says about its keys: by the class that says it, then by key."""


class Record:
    """The values of one map of a policy: frozen, and equal to the model with the same values."""

    __slots__ = ("__dict__", "_given", "_kind")

    _kind: RecordKind
    _given: frozenset[str]

    @classmethod
    def of(cls, kind: RecordKind, given: Mapping[str, Any]) -> Record:
        """Return the record of the values that a policy gives, over the defaults."""
        values = {**kind.defaults, **given}
        return _filled(_class_of(kind.path), kind, values, frozenset(given))

    @property
    def model_fields_set(self) -> set[str]:
        """The keys that the policy gives."""
        return set(self._given)

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """Return a record with other values for these keys."""
        values = {**self.__dict__, **update}
        return _filled(type(self), self._kind, values, self._given | update.keys())

    def noted(self, kind: type[M]) -> Mapping[str, M]:
        """Return, by its key, what the model says about each key in a value of this class."""
        return self._kind.notes.get(kind, {})

    def as_model(self) -> BaseModel:
        """Return the model with these values."""
        module, _, name = f"{_MODELS}.{self._kind.path}".rpartition(".")
        model: type[BaseModel] = getattr(importlib.import_module(module), name)
        values = {key: _as_model(value) for key, value in self.__dict__.items()}
        return model.model_construct(set(self._given), **values)

    def __getattr__(self, name: str) -> PlainValue:
        if not name.startswith("model_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.as_model(), name)

    def __setattr__(self, name: str, _: object) -> NoReturn:
        raise AttributeError(f"the values of a policy are frozen: {name}")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Record):
            return self._kind.path == other._kind.path and self.__dict__ == other.__dict__
        return self.as_model() == other

    def __hash__(self) -> int:
        return hash((self._kind.path, *self.__dict__.values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{key}={self.__dict__[key]!r}" for key in sorted(self._given))
        return f"{type(self).__name__}({values})"

    def __reduce__(self) -> tuple[Callable[..., Record], tuple[object, ...]]:
        return _revived, (self._kind, self.__dict__, self._given)


@cache
def _class_of(path: str) -> type[Record]:
    """Return the class of the records of a model, with what follows from its values."""
    name = path.rpartition(".")[2]
    derived = (DERIVED[name],) if name in DERIVED else ()
    return type(name, (Record, *derived), {"__slots__": ()})


def _filled(made: type[R], kind: RecordKind, values: Mapping[str, Any], given: frozenset[str]) -> R:
    record = made.__new__(made)
    object.__setattr__(record, "_kind", kind)
    object.__setattr__(record, "_given", given)
    record.__dict__.update(values)
    return record


def _revived(kind: RecordKind, values: Mapping[str, Any], given: frozenset[str]) -> Record:
    record = Record.of(kind, values)
    object.__setattr__(record, "_given", given)
    return record


def _as_model(value: object) -> object:
    if isinstance(value, Record):
        return value.as_model()
    if isinstance(value, tuple):
        return tuple(map(_as_model, value))
    if isinstance(value, dict):
        return {key: _as_model(part) for key, part in value.items()}
    return value


# How a value that JSON does not have is written: a map with one key.
_MAP = "map"
_SCALARS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "share": (Share, lambda value: str(value.percent), lambda text: Share(Fraction(text))),
    "ratio": (Fraction, str, Fraction),
    "seconds": (Duration, lambda value: value.seconds, Duration),
    "bytes": (ByteSize, lambda value: value.bytes, ByteSize),
}


class Writer:
    """Writes the values of a policy as plain JSON, and collects the models that they need."""

    def __init__(self) -> None:
        self.kinds: dict[str, Any] = {}

    def written(self, value: object) -> object:
        """Return a value of a policy as JSON: maps of the language, their texts and numbers."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, tuple):
            return [self.written(part) for part in value]
        if isinstance(value, dict):
            return {_MAP: {key: self.written(part) for key, part in value.items()}}
        for tag, (kind, write, _) in _SCALARS.items():
            if isinstance(value, kind):
                return {tag: write(value)}
        return self._written_model(cast("BaseModel", value))

    def _written_model(self, model: BaseModel) -> dict[str, Any]:
        kind = type(model)
        path = f"{kind.__module__}.{kind.__qualname__}".removeprefix(f"{_MODELS}.")
        if path not in self.kinds:
            self.kinds[path] = {}
            fields = kind.model_fields.items()
            self.kinds[path] |= {
                "defaults": {
                    key: self.written(field.default)
                    for key, field in fields
                    if not field.is_required()
                },
                "notes": {
                    name: {
                        key: _attributes(note)
                        for key, field in fields
                        for note in field.metadata
                        if isinstance(note, noted)
                    }
                    for name, noted in NOTES.items()
                },
            }
        given = {
            key: self.written(getattr(model, key))
            for key in kind.model_fields
            if key in model.model_fields_set
        }
        return {path: given}


def _attributes(note: Comparison | Gate) -> dict[str, Any]:
    return {name: getattr(note, name) for name in type(note).__slots__}


class RecordReader:
    """Reads what a `Writer` wrote."""

    def __init__(self, kinds: Mapping[str, Any]) -> None:
        self._written = kinds
        self._kinds: dict[str, RecordKind] = {}

    def value(self, written: PlainValue) -> PlainValue:
        """Return the value; a map of the language as a record."""
        if isinstance(written, list):
            return tuple(map(self.value, written))
        if not isinstance(written, dict):
            return written
        [(tag, content)] = written.items()
        if tag == _MAP:
            return {key: self.value(part) for key, part in content.items()}
        if tag in _SCALARS:
            return _SCALARS[tag][2](content)
        given = {key: self.value(part) for key, part in content.items()}
        return Record.of(self._kind(tag), given)

    def _kind(self, path: str) -> RecordKind:
        if path not in self._kinds:
            written = self._written[path]
            self._kinds[path] = RecordKind(
                path,
                {key: self.value(part) for key, part in written["defaults"].items()},
                {
                    NOTES[name]: {key: NOTES[name](**values) for key, values in notes.items()}
                    for name, notes in written["notes"].items()
                },
            )
        return self._kinds[path]


_RECORDS = "records"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")


class Preset(NamedTuple):
    """The values of a preset, and the text that they were read from."""

    source: PolicySource
    values: Record
    digest: str


def digest_of(policy: Policy) -> str:
    """Return 16 hex digits of the hash of all values of a policy."""
    return hashlib.sha256(policy.model_dump_json().encode()).hexdigest()[:16]


def recorded_preset(source: PolicySource, folder: Path | None = None) -> Preset | None:
    """Return the values of a text; None if it is not a preset, or none whose values are known.

    `folder` is that of the presets, by default of those that ship.
    """
    folder = folder or shipped_folder("policies")
    folder_of, _, name = (source.path or "").rpartition("/")
    path = folder / record_path(name)
    if folder_of != str(folder) or not path.is_file():
        return None
    found: Mapping[str, Any] = json.loads(path.read_bytes())
    try:
        bases = found["texts"].keys() - {name}
        texts = {base: read_source(folder / base, base).text for base in bases}
    except PolicyError:
        return None
    texts[name] = source.text
    given = environment()
    variables = {one for text in texts.values() for one in _VARIABLE.findall(text)}
    if any(given.get(variable, "").strip() for variable in variables):
        return None
    if {one: _hash(text) for one, text in texts.items()} != found["texts"]:
        return None
    return Preset(source, RecordReader(found["models"]).value(found["values"]), found["digest"])


def record_path(file: str) -> str:
    """Return the path of the values of a preset's file, below the folder of the presets."""
    return f"{_RECORDS}/{file.removesuffix('.yaml')}.json"


def preset_record(source: PolicySource, folder: Path | None = None) -> dict[str, Any]:
    """Return what the file with the values of a preset holds; `folder` is that of the presets."""
    folder = (folder or shipped_folder("policies")).resolve()
    policy = parsed_policy(source, variables={})
    writer = Writer()
    values = writer.written(policy)
    texts = {str(text.path): _hash(text.text) for text in extended(source, {}).sources}
    return {
        "texts": {path.removeprefix(f"{folder}/"): texts[path] for path in sorted(texts)},
        "digest": digest_of(policy),
        "values": values,
        "models": dict(sorted(writer.kinds.items())),
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
