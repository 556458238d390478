"""`AgentOptions`: the settings of the requirements documents, as options that change a policy.

Each option is one setting of one of the documents. This module alone says which keys of a policy it
sets; `docs/agent-options.md` has the table.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from types import MappingProxyType
from typing import Any, NamedTuple, ParamSpec, TypedDict, TypeVar, cast

from policyctx.definitions.actions import Action
from policyctx.errors import Diagnostic, Location, PolicyError, UnknownOptionError, nearest
from policyctx.policy.nodes import Node, action_of, compacts, steps_of
from policyctx.policy.sources import PathName

P = ParamSpec("P")
R = TypeVar("R")

_NONE_REMOVED: Mapping[str, str] = MappingProxyType({})


def checks_options(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function, or a method, so that it rejects unknown keyword arguments by name.

    The call raises `UnknownOptionError` instead of Python's own `TypeError`. A class is named in
    the error by its own name.
    """
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    known = [name for name in code.co_varnames[:count] if name != "self"]
    called = function.__qualname__.removesuffix(".__init__")

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def checked_async(*args: P.args, **kwargs: P.kwargs) -> object:
            check_options(called, kwargs, known)
            return await function(*args, **kwargs)

        return cast("Callable[P, R]", checked_async)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        check_options(called, kwargs, known)
        return function(*args, **kwargs)

    return checked


def check_options(
    function: str,
    given: Iterable[str],
    known: Iterable[str],
    *,
    removed: Mapping[str, str] = _NONE_REMOVED,
) -> None:
    """Raise `UnknownOptionError` for the first name in `given` that is not in `known`.

    `function` is the name of the function that was called. `removed` gives, by the name of an
    option that the function no longer has, the sentence that says what to do instead. A name in
    camelCase counts as its snake_case form in suggestions.
    """
    known = list(known)
    for name in given:
        if name not in known:
            likely = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
            why = removed.get(likely, "")
            near = None if why else nearest(likely, known)
            raise UnknownOptionError(function, name, known, near, why)


class AgentOptions(TypedDict, total=False):
    """The options by name; None is the same as leaving an option out."""

    offload_enabled: bool | None
    """False saves no item: a step with `ephemeral: true` that offloads clears instead, and the
    other steps that offload or drop are removed."""
    offload_token_threshold: int | str | None
    """From this many tokens on an item leaves before a model call: the `min_tokens` of each such
    step whose own is above 0, else that of the policy's top level."""
    offload_char_threshold: int | None
    """The same in characters: `min_chars`."""
    offload_ratio_threshold: float | None
    """What the items of a step must be of all messages: the `ratio` of each step that has one."""
    offload_root_path: PathName | None
    """The folder of the files, `store.root`; `{session_id}` and `~` stand for what they say."""
    ephemeral_keep_recent: int | None
    """How many results of each ephemeral tool stay, whatever the tools say: `keep_recent` in the
    `select` of each step with `ephemeral: true`."""
    threshold: int | str | None
    """Tokens, or a share of the window such as `"80%"`, from which on history is summarised."""
    context_window: int | None
    """The context window of the agent's model, in tokens: `model.context_window`."""
    model: str | None
    """The model that makes the summary: `compaction.summary.model`."""
    summary_max_words: int | None
    """`compaction.summary.max_words`."""
    summary_check: bool | Mapping[str, Any] | None
    """What an answer must have to be the summary, `compaction.summary.check`: False is not to be
    empty, True is the check of the other presets, a map is that of a policy."""
    summary_timeout: str | None
    """How long the summary may take with all attempts, such as `"90s"`: `timeout` and
    `total_timeout` of `compaction.summary`."""
    max_restore_files: int | None
    """`compaction.restore.max_files`."""
    max_restore_tokens_per_file: int | None
    """`compaction.restore.max_tokens_per_file`."""
    max_restore_tokens_total: int | None
    """`compaction.restore.max_tokens_total`."""
    work_dir: PathName | None
    """The folder of the files that may be restored: `compaction.restore.work_dir`."""
    reads_file: Mapping[str, str | Sequence[str]] | None
    """Tools that read files, each with the field of its input that has the path:
    `tools.<name>.reads_file`."""


def with_options(root: Node, options: Mapping[str, Any], *, function: str = "Session") -> Node:
    """Return the tree of a policy with the keys that options set.

    A key that an option sets has the option as its place, also in errors; `function` is what was
    called with the options. Raises `UnknownOptionError` for an unknown option, and `PolicyError`
    if the policy has no step that an option could set, or for a `reads_file` that is not a map.
    Values are not checked: `validated` does that.
    """
    check_options(function, options, AgentOptions.__annotations__)
    for name, value in options.items():
        if value is not None:
            root = _CHANGES[name](_Option(value, Location(f"{function}, option {name}")), root)
    return root


class _Option(NamedTuple):
    """The value of an option, and the place that its keys get."""

    value: Any
    place: Location

    def node(self) -> Node:
        """Return the value as a tree."""
        return _node(self.value, self.place)

    def error(self, sentence: str, code: str = "PC107") -> PolicyError:
        """Return the error of an option that this policy cannot take."""
        return PolicyError([Diagnostic(self.place, code, sentence)])


def _node(value: object, place: Location) -> Node:
    if isinstance(value, Mapping):
        return Node({key: _node(child, place) for key, child in value.items()}, place, place)
    if isinstance(value, list | tuple):
        return Node([_node(child, place) for child in value], place, place)
    path = getattr(value, "__fspath__", None)
    return Node(value if path is None else path(), place, place)


def tree_of(document: Mapping[str, Any]) -> Node:
    """Return a tree of plain values, as `Policy.model_dump` gives them."""
    return _node(document, Location("code"))


def _key(*dotted: str) -> Callable[[_Option, Node], Node]:
    """Return the change that sets one key of a policy, or several to one value."""

    def change(option: _Option, root: Node) -> Node:
        for path in dotted:
            root = _set(root, path.split("."), option.node())
        return root

    return change


def _set(node: Node, path: Sequence[str], value: Node) -> Node:
    """Return the tree with a value at a path; a scalar on the way gives way to a map."""
    if not path:
        return value
    children = dict(node.value) if node.is_map else {}
    below = children.get(path[0], Node({}, value.place, value.place))
    return node._replace(value={**children, path[0]: _set(below, path[1:], value)}, raw=None)


def _without_offloading(option: _Option, root: Node) -> Node:
    if not isinstance(option.value, bool):
        raise option.error(f"expected True or False, got {option.value!r}", "PC103")
    if option.value:
        return root
    kept = [step for step in steps_of(root) if not _moves_items(step) or _is_ephemeral(step)]
    return _with_steps(root, [_cleared(step, option) for step in kept])


def _cleared(step: Node, option: _Option) -> Node:
    """Return the step that destroys what a step would move to files, and saves nothing.

    What is ephemeral is destroyed with or without a file (PRD context-filesystem, 4.1).
    """
    if not _moves_items(step):
        return step
    keys = {"do": Action.CLEAR.do, "placeholder": Action.CLEAR.text}
    given = {key: _node(value, option.place) for key, value in keys.items()}
    select = step.value["select"].without("unit", "placeholders")
    return step._replace(value={**step.without("save").value, **given, "select": select})


def _threshold(key: str, other: str) -> Callable[[_Option, Node], Node]:
    """Return the change of a least size in one unit, which replaces one in the other."""

    def change(option: _Option, root: Node) -> Node:
        steps = [_over(step, key, other, option) for step in steps_of(root)]
        if all(map(is_, steps, steps_of(root))):
            return _set(root.without(other), [key], option.node())
        return _with_steps(root, steps)

    return change


def _over(step: Node, key: str, other: str, option: _Option) -> Node:
    """Return a step with another threshold if it takes items by one that is above 0."""
    select = step.child("select")
    given = step.said("select", key) or step.said("select", other)
    if select is None or not given or step.said("on") == "arrival":
        return step
    return _set(step, ["select"], _set(select.without(other), [key], option.node()))


def _ratio(option: _Option, root: Node) -> Node:
    def with_ratio(gates: Node) -> Node:
        if isinstance(gates.value, list):
            return gates._replace(value=[with_ratio(each) for each in gates.value])
        if (ratio := gates.child("ratio")) is None:
            return gates
        kept = {key: child for key, child in ratio.value.items() if key == "of"}
        limit = {"at_least": option.node(), **kept}
        return _set(gates, ["ratio"], Node(limit, option.place, ratio.key))

    def changed(step: Node) -> Node:
        gates = step.child("when")
        if gates is None or not any(each.child("ratio") for each in (gates, *gates.elements)):
            return step
        return _set(step, ["when"], with_ratio(gates))

    return _with_some_steps(option, root, changed, "a gate `ratio`")


def _recency(option: _Option, root: Node) -> Node:
    def changed(step: Node) -> Node:
        path = ["select", "keep_recent"]
        return _set(step, path, option.node()) if _is_ephemeral(step) else step

    return _with_some_steps(option, root, changed, "`select: {ephemeral: true}`")


def _when_to_summarise(option: _Option, root: Node) -> Node:
    def changed(step: Node) -> Node:
        gate = {"tokens": {"at_least": option.value}}
        return _set(step, ["when"], _node(gate, option.place)) if compacts(step) else step

    return _with_some_steps(option, root, changed, "`do: compact`")


def _readers(option: _Option, root: Node) -> Node:
    if not isinstance(option.value, Mapping):
        sentence = f"expected a map such as {{'Read': 'file_path'}}, got {option.value!r}"
        raise option.error(sentence, "PC103")
    for tool, fields in option.value.items():
        root = _set(root, ["tools", tool, "reads_file"], _node(fields, option.place))
    return root


def _with_some_steps(
    option: _Option, root: Node, changed: Callable[[Node], Node], needed: str
) -> Node:
    """Return the tree with the steps that an option concerns changed; at least one must be."""
    steps = steps_of(root)
    new = [*map(changed, steps)]
    if all(map(is_, steps, new)):
        policy = "" if root.child("name") is None else f" {root.said('name')}"
        raise option.error(f"no step of the policy{policy} has {needed}")
    return _with_steps(root, new)


def _with_steps(root: Node, steps: list[Node]) -> Node:
    old = root.child("steps")
    return root if old is None else _set(root, ["steps"], old._replace(value=steps))


def _moves_items(step: Node) -> bool:
    action = action_of(step)
    return action is not None and action.saves and not action.takes_messages


def _is_ephemeral(step: Node) -> bool:
    return step.said("select", "ephemeral") is True


_CHANGES: dict[str, Callable[[_Option, Node], Node]] = {
    "offload_enabled": _without_offloading,
    "offload_token_threshold": _threshold("min_tokens", "min_chars"),
    "offload_char_threshold": _threshold("min_chars", "min_tokens"),
    "offload_ratio_threshold": _ratio,
    "offload_root_path": _key("store.root"),
    "ephemeral_keep_recent": _recency,
    "threshold": _when_to_summarise,
    "context_window": _key("model.context_window"),
    "model": _key("compaction.summary.model"),
    "summary_max_words": _key("compaction.summary.max_words"),
    "summary_check": _key("compaction.summary.check"),
    "summary_timeout": _key("compaction.summary.timeout", "compaction.summary.total_timeout"),
    "max_restore_files": _key("compaction.restore.max_files"),
    "max_restore_tokens_per_file": _key("compaction.restore.max_tokens_per_file"),
    "max_restore_tokens_total": _key("compaction.restore.max_tokens_total"),
    "work_dir": _key("compaction.restore.work_dir"),
    "reads_file": _readers,
}
