"""Settings of a policy and their knobs: the values that a study may try, and the coarse grid."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePath
from typing import Any, TypeAlias, get_args

from policyctx.definitions.actions import STEP_ACTIONS
from policyctx.policy.loading import resolved
from policyctx.policy.models import VERSIONS
from policyctx.policy.nodes import type_at
from policyctx.policy.sources import PolicySource, is_shipped, policy_source
from policyctx.policy.writing import document_yaml
from policyctx.tuning.evaluating import tried

Yaml: TypeAlias = dict[str, Any]
Value: TypeAlias = str | int
Values: TypeAlias = tuple[Value, ...]

# The names of the knobs, in the order in which they are shown.
OFFLOADING = "offloading"
MIN_TOKENS = "min_tokens"
KEEP_RECENT = "keep_recent"
GATE = "when"
BREAKPOINTS = "breakpoints"
SUMMARIES = "summaries"
TOOL = "tool"
KNOBS = (OFFLOADING, MIN_TOKENS, KEEP_RECENT, GATE, BREAKPOINTS, SUMMARIES, TOOL)
# The value of a knob that takes something away.
NONE = "none"
# The steps that are added to a policy that has none of the kind.
_OFFLOAD: Yaml = {"name": "offload-results", "do": "offload", "select": {"types": ["tool_result"]}}
_COMPACT: Yaml = {"name": "summarise", "do": "compact"}
_WHEN_TO_SUMMARISE = "80%"
# What means nothing for a policy that offloads nothing.
_OF_OFFLOADING = frozenset({MIN_TOKENS, KEEP_RECENT, GATE, TOOL})


@dataclass(frozen=True, slots=True)
class Setting:
    """Values by the names of their knobs, sorted by name."""

    values: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> "Setting":
        """Return the setting with these values."""
        return cls(tuple(sorted(values.items())))

    def get(self, knob: str) -> Value | None:
        """Return the value of a knob, None where the incumbent's stays."""
        return dict(self.values).get(knob)

    def with_(self, knob: str, value: Value | None) -> "Setting":
        """Return the setting with another value, with None that of the incumbent."""
        changed: dict[str, Value] = {k: v for k, v in self.values if k != knob}
        return Setting.of(changed if value is None else changed | {knob: value})

    @property
    def changes(self) -> int:
        """How many keys it changes: its distance from the incumbent."""
        return len(self.values)

    def __str__(self) -> str:
        values = dict(self.values)
        said = [f"{knob} {values[knob]}" for knob in KNOBS if knob in values]
        return ", ".join(said) or "as it is"


_MEANINGS = {
    OFFLOADING: "offloading none: only the steps that summarise",
    MIN_TOKENS: "min_tokens N: smaller items stay",
    KEEP_RECENT: "keep_recent N: the newest N items stay",
    BREAKPOINTS: "breakpoints: who sets the cache markers, auto: the policy",
    SUMMARIES: "summaries N%: summarise at N% of the context window, none: never",
    TOOL: "tool NAME N: items of this tool leave from N tokens on, keep: they stay",
}
_MEANINGS_OF_GATES = {
    NONE: "when none: offload before every call",
    "idle": "when idle: after a pause in which the prompt cache expires",
    "frees": "when frees N: if N tokens leave at once",
    "tokens": "when tokens N: at N of the context window",
    "pays_back": "when pays_back N: if it pays within N calls, or N% of those expected",
}


def legend(settings: Iterable[Setting]) -> list[str]:
    """Return what the words of settings mean, each that occurs once, in the order of the knobs."""
    given = {pair for setting in settings for pair in setting.values}
    knobs = {knob for knob, _ in given}
    gates = {
        words.split()[0]
        for knob, value in given
        if knob == GATE
        for words in str(value).split(" or ")
    }
    found = [_MEANINGS[knob] for knob in KNOBS if knob in knobs and knob in _MEANINGS]
    return found + [said for gate, said in _MEANINGS_OF_GATES.items() if gate in gates]


SUMMARISE_ONLY = Setting.of({OFFLOADING: NONE})


def gate_yaml(words: str) -> list[Yaml] | Yaml | None:
    """Return the YAML of a gate in words: `idle or frees 20000`; None for `none`."""
    if words == NONE:
        return None
    alternatives = [_condition(*one.split()) for one in words.split(" or ")]
    return alternatives[0] if len(alternatives) == 1 else alternatives


def _condition(gate: str, limit: str = "") -> Yaml:
    if gate == "idle":
        return {"idle": {"over": "cache_ttl"}}
    if gate == "pays_back":
        return {"pays_back": {"at_most": limit if limit.endswith("%") else int(limit)}}
    return {gate: {"at_least": limit if limit.endswith("%") else int(limit)}}


class Incumbent:
    """The policy that settings change, as the YAML that its files come to."""

    def __init__(self, name: str) -> None:
        """Read the preset or the file called `name`; raises `PolicyError`."""
        self.name = name
        self.source: PolicySource = policy_source(name)
        # What the environment gave stays an expression, since it may be a secret.
        self.document: Yaml = resolved(self.source).as_written()

    @property
    def label(self) -> str:
        """What tables call it: the name of the preset or of the file."""
        return PurePath(self.name).name

    @property
    def extends(self) -> str:
        """What a policy names to extend it: the name of the preset, or the file's path."""
        is_file = not is_shipped(self.name) and self.source.path is not None
        return str(self.source.path) if is_file else self.name

    @property
    def steps(self) -> list[Yaml]:
        """The steps of its pipeline."""
        found: list[Yaml] = self.document.get("steps") or []
        return found

    def overlay(self, setting: Setting, *, name: str, extends: str | None = None) -> Yaml:
        """Return the policy of a setting: only the keys that it changes, over the incumbent.

        The keys that it changes again are the incumbent's as written. `name` is the new policy's.
        """
        overlay: Yaml = {
            "apiVersion": VERSIONS[-1], "name": name, "extends": extends or self.extends,
        }  # fmt: skip
        for knob in KNOBS:
            value = setting.get(knob)
            if value is not None:
                _CHANGES[knob](_Change(self, overlay), value)
        steps = [one for one in overlay.pop("steps", {}).values() if one not in self.steps]
        return overlay | ({"steps": steps} if steps else {})

    def on_preset(self, preset: str, *, called: str) -> Yaml:
        """Return a preset with the incumbent's model, so that both are priced alike."""
        model = self.document.get("model")
        return {"apiVersion": VERSIONS[-1], "name": called, "extends": preset} | (
            {"model": model} if model else {}
        )

    def text(self, setting: Setting, *, name: str, extends: str | None = None) -> str:
        """Return the policy of a setting as YAML."""
        return document_yaml(self.overlay(setting, name=name, extends=extends))


@dataclass(frozen=True, slots=True)
class _Change:
    """An overlay while it is made; its steps are a map by name until it is complete."""

    incumbent: Incumbent
    overlay: Yaml

    def step(self, step: Yaml) -> Yaml:
        """Return a step of the overlay, at first as the incumbent has it."""
        steps: dict[str, Yaml] = self.overlay.setdefault("steps", {})
        return steps.setdefault(step["name"], deepcopy(step))

    def offloading(self) -> Iterator[Yaml]:
        """Yield the steps of the overlay that offload or clear before a call; one is added.

        A step that only makes a request fit into the window stays as it is.
        """
        found = [step for step in self.incumbent.steps if _offloads(step)]
        for step in found or [_OFFLOAD]:
            mine = self.step(step)
            if "remove" not in mine:
                yield mine


def _offloads(step: Yaml) -> bool:
    action = STEP_ACTIONS[step["do"]]
    is_before_call = step.get("on", "model_call") == "model_call"
    return action.leaves_placeholder and is_before_call and not _makes_it_fit(step)


def _makes_it_fit(step: Yaml) -> bool:
    """Whether a step acts only on a request that is larger than the window: no setting does so."""
    when = step.get("when")
    return isinstance(when, dict) and (when.get("tokens") or {}).get("over") == "100%"


def _compacts(step: Yaml) -> bool:
    return STEP_ACTIONS[step["do"]].takes_messages


def _change_offloading(change: _Change, _: Value) -> None:
    """Take every step out that takes items; summarise late if nothing else is left."""
    steps = change.incumbent.steps
    for step in steps:
        if not _compacts(step):
            change.overlay.setdefault("steps", {})[step["name"]] = _removal(step)
    if not any(map(_compacts, steps)) and SUMMARIES not in change.overlay:
        change.step(_COMPACT)["when"] = {"tokens": {"at_least": _WHEN_TO_SUMMARISE}}


def _removal(step: Yaml) -> Yaml:
    return {"name": step["name"], "remove": True}


def _change_min_tokens(change: _Change, value: Value) -> None:
    """Change the threshold in every place that gives one but the tools' rules, else at the top."""
    document, overlay = change.incumbent.document, change.overlay
    for item_type, rule in (document.get("items") or {}).items():
        if rule and _has_threshold(rule):
            overlay.setdefault("items", {})[item_type] = {MIN_TOKENS: value}
    overlay[MIN_TOKENS] = value
    for step in change.offloading():
        select = step.get("select") or {}
        if _has_threshold(select):
            kept = {k: v for k, v in select.items() if k not in {"min_tokens", "min_chars"}}
            step["select"] = {**kept, MIN_TOKENS: value}


def _has_threshold(rule: Yaml) -> bool:
    return "min_tokens" in rule or "min_chars" in rule


def _change_keep_recent(change: _Change, value: Value) -> None:
    """Keep so many of the newest items; among whom they are counted stays."""
    for step in change.offloading():
        select = dict(step.get("select") or {})
        before = select.get(KEEP_RECENT)
        if isinstance(before, int):
            select[KEEP_RECENT] = value
        else:
            counted = before.get("per") if isinstance(before, dict) else "all"
            select[KEEP_RECENT] = {"items": value} | ({"per": counted} if counted else {})
        step["select"] = select


def _change_gate(change: _Change, value: Value) -> None:
    when = gate_yaml(str(value))
    for step in change.offloading():
        step.pop("when", None)
        if when is not None:
            step["when"] = when


def _change_breakpoints(change: _Change, value: Value) -> None:
    change.overlay.setdefault("model", {})["cache"] = {BREAKPOINTS: value}


def _change_summaries(change: _Change, value: Value) -> None:
    """Summarise at a share of the context window; with `none` never."""
    compacting = [step for step in change.incumbent.steps if _compacts(step)]
    steps: dict[str, Yaml] = change.overlay.setdefault("steps", {})
    if value == NONE:
        steps.pop(_COMPACT["name"], None)
        steps.update({step["name"]: _removal(step) for step in compacting})
        return
    for step in compacting or [_COMPACT]:
        change.step(step)["when"] = {"tokens": {"at_least": value}}


def _change_tool(change: _Change, value: Value) -> None:
    """Give one tool a rule: `Read keep`, or `Read 6000`, its threshold."""
    tool, _, rule = str(value).rpartition(" ")
    said: Yaml = {"offload": False} if rule == "keep" else {MIN_TOKENS: int(rule)}
    change.overlay["tools"] = {tool: said}


_CHANGES: dict[str, Callable[[_Change, Value], None]] = {
    OFFLOADING: _change_offloading,
    MIN_TOKENS: _change_min_tokens,
    KEEP_RECENT: _change_keep_recent,
    GATE: _change_gate,
    BREAKPOINTS: _change_breakpoints,
    SUMMARIES: _change_summaries,
    TOOL: _change_tool,
}
_MIN_TOKENS = (0, 100, 200, 400, 800, 1500, 3000, 6000)
_KEEP_RECENT = (1, 2, 3, 4, 5, 7, 10)
_SUMMARIES = ("60%", "70%", "80%", "90%", NONE)
_PAYING = ("pays_back 25%", "pays_back 20", "pays_back 5")
_FREEING = ("frees 10000", "frees 20000", "frees 50000")
_FILLING = ("tokens 50%", "tokens 70%")
_COARSE_GATES = (NONE, "idle", "idle or frees 20000", "frees 50000", "tokens 50%")
# A rule for one tool keeps its results, or has a threshold of its own.
_TOOL_RULES = ("keep", "0", "6000")
# A tool is worth a rule of its own if so many sessions have it.
_TOOL_SESSIONS = 3
_MOST_TOOLS = 8


@dataclass(frozen=True, slots=True)
class Space:
    """The values of each knob in order, and where its coarse grid has points."""

    knobs: Mapping[str, Values]
    coarse: Mapping[str, Values]
    alone: Mapping[str, Values]
    """Values that are first tried with nothing else changed."""
    current: Mapping[str, Value] = field(default_factory=dict)
    """The values that the incumbent has, of the knobs of which it has one."""

    def grid(self) -> list[Setting]:
        """Return the coarse grid: the incumbent, each value alone, and their combinations."""
        found = [Setting()]
        found += [
            self._normal(Setting().with_(knob, value))
            for knob, values in self.alone.items()
            for value in values
        ]
        found += [SUMMARISE_ONLY.with_(SUMMARIES, v) for v in self.alone.get(SUMMARIES, ())]
        found.append(SUMMARISE_ONLY)
        combined = [Setting()]
        for knob, values in self.coarse.items():
            combined = [one.with_(knob, value) for one in combined for value in values]
        return list(dict.fromkeys(chain(found, map(self._normal, combined))))

    def neighbours(self, setting: Setting, more: Mapping[str, Values]) -> list[Setting]:
        """Return the settings one step away: a value beside it, or the incumbent's.

        `more` are the knobs of which any value is one step away.
        """
        found: list[Setting] = []
        for knob, values in self.knobs.items():
            value = setting.get(knob)
            beside = _beside(knob, values, self.current.get(knob) if value is None else value)
            found += [setting.with_(knob, one) for one in (*beside, None)]
        for knob, values in more.items():
            found += [setting.with_(knob, one) for one in (*values, None)]
        return [one for one in dict.fromkeys(map(self._normal, found)) if one != setting]

    def _normal(self, setting: Setting) -> Setting:
        """Return the setting without the values that change nothing."""
        is_idle = setting.get(OFFLOADING) == NONE
        return Setting(
            tuple(
                (knob, value)
                for knob, value in setting.values
                if self.current.get(knob) != value and not (is_idle and knob in _OF_OFFLOADING)
            )
        )


def _beside(knob: str, values: Values, value: Value | None) -> Iterable[Value]:
    """Return the values one step away from a value; all of them from one that is not there."""
    if value not in values:
        return values
    if knob == GATE:
        return [one for one in values if _is_near(str(one), str(value))]
    at = values.index(value)
    return (*values[max(0, at - 1) : at], *values[at + 1 : at + 2])


def _is_near(one: str, other: str) -> bool:
    """Whether two gates differ in a limit, or by one condition that only one of them has."""
    first, second = (set() if w == NONE else set(w.split(" or ")) for w in (one, other))
    if one == other:
        return False
    return len(first ^ second) == 1 or _kinds(first) == _kinds(second)


def _kinds(conditions: set[str]) -> set[str]:
    return {condition.split()[0] for condition in conditions}


def space_for(incumbent: Incumbent) -> Space:
    """Return the space of the settings that change an incumbent."""
    gates = (*_FREEING, *_FILLING, *_PAYING)
    # Where an edit ends up in the prompt cache changes what every other value is worth.
    placements: Values = get_args(type_at(("model", "cache", BREAKPOINTS)))
    knobs: dict[str, Values] = {
        OFFLOADING: (NONE,),
        MIN_TOKENS: _MIN_TOKENS,
        KEEP_RECENT: _KEEP_RECENT,
        GATE: (NONE, *gates, *(f"idle or {gate}" for gate in gates), "idle"),
        SUMMARIES: _SUMMARIES,
    }
    if placements:
        knobs[BREAKPOINTS] = placements
    coarse: dict[str, Values] = {
        MIN_TOKENS: (200, 800, 3000),
        KEEP_RECENT: (1, 3, 10),
        GATE: _COARSE_GATES,
    }
    return Space(
        knobs=knobs,
        coarse={**coarse, **({BREAKPOINTS: placements[-1:]} if placements else {})},
        alone={**coarse, SUMMARIES: _SUMMARIES, BREAKPOINTS: placements},
        current=dict(_current(incumbent, knobs)),
    )


def _current(incumbent: Incumbent, knobs: Mapping[str, Values]) -> Iterator[tuple[str, Value]]:
    """Yield each knob of which a value makes the incumbent's own policy, with that value."""
    own = tried(incumbent.text(Setting(), name=incumbent.name))
    for knob, values in knobs.items():
        for value in values:
            setting = Setting().with_(knob, value)
            same = tried(incumbent.text(setting, name=incumbent.name))
            if own is not None and same is not None and same.digest == own.digest:
                yield knob, value


def tool_rules(tools_of_sessions: Iterable[frozenset[str]]) -> dict[str, Values]:
    """Return the rules for one tool that may be tried; each tool is in three sessions or more."""
    counts: dict[str, int] = {}
    for tools in tools_of_sessions:
        for tool in tools:
            counts[tool] = counts.get(tool, 0) + 1
    seen = sorted((-count, tool) for tool, count in counts.items() if count >= _TOOL_SESSIONS)
    rules = (f"{tool} {rule}" for _, tool in seen[:_MOST_TOOLS] for rule in _TOOL_RULES)
    return {TOOL: tuple(rules)} if seen else {}
