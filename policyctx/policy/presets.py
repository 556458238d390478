"""Presets whose values are known: what reading their texts gives, kept beside them as JSON.

The file of a preset names the texts that it was made from by their hashes. When one of them is
another by now, or the environment sets a variable that one of them names, the preset is read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from policyctx.errors import PolicyError
from policyctx.policy.models import Policy
from policyctx.policy.records import Reader, Record, Writer
from policyctx.policy.sources import PolicySource, environment, read_source
from policyctx.resources import shipped_folder

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
    return Preset(source, Reader(found["models"]).value(found["values"]), found["digest"])


def record_path(file: str) -> str:
    """Return the path of the values of a preset's file, below the folder of the presets."""
    return f"{_RECORDS}/{file.removesuffix('.yaml')}.json"


def preset_record(source: PolicySource, folder: Path | None = None) -> dict[str, Any]:
    """Return what the file with the values of a preset holds; `folder` is that of the presets."""
    from policyctx.policy.loading import extended, parsed_policy  # noqa: PLC0415 - slow to import

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
