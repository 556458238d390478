"""What the compactions of a recorded session lost, and what later turns show of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from policyctx.compaction.extractive.languages import (
    CHINESE,
    ENGLISH,
    FRENCH,
    GERMAN,
    Language,
    cues_of,
)
from policyctx.compaction.points import PointKind
from policyctx.definitions.items import written_by
from policyctx.replay.audit import EXTRACTIVE, AuditedCompaction, AuditedSession, audited
from policyctx.replay.recording import Anew, Recording
from tests.compaction.extractive.summaries import edited, said
from tests.conversations import Message, call, results, user
from tests.growing import grows_at_most
from tests.replay.sessions import recording

ORDER = "Never push to main."
NEW_ORDER = "Always write the tests first."
_KEPT, _ORDERED = (
    {"type": "message", "role": "user", "content": text} for text in ("The port is 8081.", ORDER)
)
# The context before an encrypted summary and after it.
SEALED = (
    [_KEPT, _ORDERED],
    [dict(_KEPT), {"type": "compaction", "encrypted_content": "gAAAA"}],
)


def summary(text: str = "The work went on.") -> Message:
    return written_by("summary", user(text))


def compacted(*groups: Sequence[Message], at: int = 1, **fields: Any) -> Recording:
    """A recording whose group at a position is the context after a compaction."""
    made = recording(*groups, anew=[at], **fields)
    calls = [
        replace(one, why_anew="compaction" if i == at else None) for i, one in enumerate(made.calls)
    ]
    return replace(made, calls=tuple(calls))


def audit(made: Recording, **options: Any) -> AuditedSession:
    return audited(made, "session.jsonl", **options)


def only(made: Recording, **options: Any) -> AuditedCompaction:
    [found] = audit(made, **options).compactions
    return found


def texts(found: AuditedCompaction) -> list[str]:
    return [one.text for one in found.findings]


@pytest.mark.parametrize(
    ("language", "order"),
    [
        (ENGLISH, "Never push unless I say so."),
        (CHINESE, "除非我同意，不要推送。"),
        (GERMAN, "Niemals pushen, es sei denn, ich sage es."),
        (FRENCH, "Ne jamais pousser sauf si je le dis."),
    ],
)
def test_each_language_has_words_of_a_condition(language: Language, order: str) -> None:
    assert cues_of((language,)).conditions.found_in(order)


def test_a_session_without_a_compaction_has_nothing_to_audit() -> None:
    assert audit(recording([user(ORDER)], [said("ok"), user("more")])).compactions == ()


def test_what_the_request_after_a_compaction_lacks_is_a_finding_with_its_place() -> None:
    first = [user("The port is 8081."), said("ok")]
    found = only(
        compacted(
            first,
            [user(ORDER), *edited("c1", "src/limits.py")],
            [summary("The port is 8081.")],
            at=2,
            times=[10.0, 20.0, 30.0],
        )
    )
    assert [(one.kind, one.text, one.call, one.at) for one in found.findings] == [
        (PointKind.ORDER, ORDER, 2, 20.0),
        (PointKind.FILE, "src/limits.py", 2, 20.0),
    ]
    assert (found.call, found.at, found.replaced) == (3, 30.0, 5)
    assert found.points == {"exact value": 1, "order": 1, "edited file": 1}


def test_only_the_exact_values_that_are_missing_are_named() -> None:
    [found] = only(
        compacted([user("The ports are 8081 and 8082.")], [summary("Port 8081 is open.")])
    ).findings
    assert found.values == ("8082",)


@pytest.mark.parametrize("kept", [user(ORDER), said("I shall never push to main.")])
def test_what_stands_beside_the_summary_is_not_lost(kept: Message) -> None:
    assert texts(only(compacted([user(ORDER), kept], [summary(), kept]))) == []


def test_what_the_system_prompt_says_is_not_lost() -> None:
    made = compacted([user(ORDER)], [summary()])
    calls = [
        replace(one, system=[{"type": "text", "text": f"# Rules\n{ORDER}"}]) for one in made.calls
    ]
    assert texts(only(replace(made, calls=tuple(calls)))) == []


def test_what_came_after_the_last_call_before_a_compaction_counts() -> None:
    made = compacted([user("Hello.")], [summary()])
    calls = (made.calls[0], replace(made.calls[1], left=(said("Hi."), user(ORDER))))
    assert texts(only(replace(made, calls=calls))) == [ORDER]


def test_what_was_taken_back_is_not_lost_and_what_stayed_there_is() -> None:
    stays = user(ORDER)
    made = recording([stays, user(NEW_ORDER)], [stays, user("Hello.")], [summary()], anew=[1, 2])
    reasons: list[Anew | None] = [None, "rewind", "compaction"]
    calls = [replace(one, why_anew=why) for one, why in zip(made.calls, reasons, strict=True)]
    assert texts(only(replace(made, calls=tuple(calls)))) == [ORDER]


def test_what_a_compaction_kept_counts_once_behind_a_change_of_the_list() -> None:
    kept, first = user(ORDER), [summary("Push never to main.")]
    made = recording(
        [user("Hello."), kept], [*first, kept], [*first, kept], [summary()], anew=[1, 2, 3]
    )
    reasons: list[Anew | None] = [None, "compaction", "change", "compaction"]
    calls = [replace(one, why_anew=why) for one, why in zip(made.calls, reasons, strict=True)]
    [_, found] = audit(replace(made, calls=tuple(calls))).compactions
    assert (texts(found), found.points) == ([ORDER], {"order": 1})


def twice(*between: Message) -> list[list[str]]:
    made = recording([user(ORDER)], [summary()], [*between], [summary()], anew=[1, 3])
    reasons: list[Anew | None] = [None, "compaction", None, "compaction"]
    calls = [replace(one, why_anew=why) for one, why in zip(made.calls, reasons, strict=True)]
    return [texts(one) for one in audit(replace(made, calls=tuple(calls))).compactions]


def test_what_an_earlier_compaction_lost_counts_there_alone() -> None:
    assert twice(user(NEW_ORDER)) == [[ORDER], [NEW_ORDER]]


def test_what_is_said_again_can_be_lost_again() -> None:
    assert twice(user(ORDER)) == [[ORDER], [ORDER]]


@pytest.mark.parametrize("again", ["I said that main must never be pushed to!", ORDER])
def test_a_user_who_says_it_again_shows_that_it_was_missed(again: str) -> None:
    found = only(compacted([user(ORDER)], [summary()], [said("Pushed."), user(again)]))
    [finding] = found.findings
    assert [(one.how, one.call, one.text) for one in finding.later] == [("said again", 3, again)]
    assert found.missed == 1


def test_a_later_statement_before_the_compaction_stands_beside_it_but_shows_nothing() -> None:
    later = "You may push to main now."
    found = only(compacted([user(ORDER), said("ok"), user(later)], [summary()]))
    [finding] = found.findings
    assert [(one.how, one.text) for one in finding.later] == [("before", later)]
    assert found.missed == 0


def test_a_file_that_is_read_again_was_missed() -> None:
    read = call("c2", "Read", {"file_path": "src/limits.py"})
    found = only(
        compacted(edited("c1", "src/limits.py"), [summary()], [read, results(("c2", "x"))])
    )
    [finding] = found.findings
    assert [(one.how, one.call) for one in finding.later] == [("read again", 3)]


def ran(command: str, name: str = "c2") -> list[Message]:
    return [call(name, "Bash", {"command": command}), results((name, "ok"))]


@pytest.mark.parametrize(
    ("order", "doing"),
    [
        ("Never edit `src/limits.py`.", edited("c2", "/work/src/limits.py")),
        (
            "Never run `git push origin`.",
            ran("git push origin main"),
        ),
        (ORDER, ran("cd /work && git push --quiet origin HEAD:main")),
        (ORDER, ran("git -C /work push origin main")),
        (ORDER, ran("git --no-pager -c user.name=me --git-dir=/work/.git push origin main")),
        (ORDER, ran("git --git-dir /work/.git --work-tree /work push origin main")),
        ("Never delete pods in prod.", ran("kubectl -n prod delete pods web")),
        ("Never delete pods in prod.", ran("kubectl --namespace prod delete pods web")),
        ("Do not deploy prod.", ran("make -C infra deploy ENV=prod")),
        ("Do not deploy prod.", ran("make -s deploy ENV=prod")),
        ("Never merge the pr.", ran("gh -R o/r pr merge 3")),
        ("Never remove the volume data.", ran("docker --context x volume remove data")),
        ("Never publish core.", ran("npm --prefix x publish core")),
        ("Never publish core.", ran("cargo +nightly --locked publish --package core")),
        ("Never remove nginx.", ran("sudo apt -y remove nginx")),
        (ORDER, ran("GIT_TRACE=1 /usr/bin/git push origin main")),
        (ORDER, ran("if (cd /work && git push origin main); then echo ok; fi")),
        (ORDER, ran("cat <<< hello\ngit push origin main")),
        (ORDER, ran("echo $((1 << 3))\ngit push origin main")),
        ("Please don't run npm install.", ran("npm install left-pad")),
        (
            "Never force push to the main branch, and don't tag.",
            ran("git tag v1; git push --force origin main"),
        ),
    ],
)
def test_an_agent_that_does_what_was_forbidden_is_shown(order: str, doing: list[Message]) -> None:
    [finding] = only(compacted([user(order)], [summary()], doing)).findings
    assert [(one.how, one.call) for one in finding.later] == [("done", 3)]


@pytest.mark.parametrize(
    "order",
    [
        "Never push to main without asking me first.",
        "Never push to main unless I say so.",
        "Never push to main until Friday.",
        "Niemals git push main, es sei denn, ich sage es.",
    ],
)
def test_a_command_that_an_order_forbids_under_a_condition_shows_nothing(order: str) -> None:
    made = compacted([user(order)], [summary()], ran("git push origin main"))
    [finding] = only(made).findings
    assert finding.later == ()


@pytest.mark.parametrize(
    "order",
    [
        "Never edit `src/old.py`, put it in `src/new.py`.",
        "Put it in `src/new.py` instead of `src/old.py`, always.",
        "Never push. Always edit `src/new.py`.",
    ],
)
def test_an_agent_that_does_what_an_order_wants_shows_nothing(order: str) -> None:
    made = compacted([user(order)], [summary()], [summary(), *edited("c1", "src/new.py")])
    [finding] = only(made).findings
    assert finding.later == ()


@pytest.mark.parametrize(
    "command",
    [
        "git push origin fix",
        "git push origin main-page",
        "git log main --grep=push",
        "git --no-pager stash push -m main",
        "git --no-pager log --oneline main --grep push",
        "git -C push log main",
        "git -c push.default=main log main",
        "grep -rn push main",
        "git commit -m 'push to main'",
        "cat <<EOF > notes\ngit push origin main",
        "cat <<'THE-END' > notes\ngit push origin main\nTHE-END",
        "cat <<\\EOF > notes\nEOF is the end.\ngit push origin main\nEOF",
    ],
)
def test_a_command_on_something_else_shows_nothing(command: str) -> None:
    [finding] = only(compacted([user(ORDER)], [summary()], ran(command))).findings
    assert finding.later == ()


def test_the_time_for_commands_grows_with_their_length() -> None:
    def prepared(size: int) -> Callable[[], object]:
        calls = [one for n in range(40) for one in ran("(" * size, f"c{n}")]
        made = compacted([user(ORDER)], [summary()], calls)
        return lambda: only(made)

    assert grows_at_most(prepared, 490)


@pytest.mark.parametrize(
    "command", ["kubectl -n delete get pods prod", "kubectl delete pods -n prod --dry-run=client"]
)
def test_a_value_of_an_option_is_not_what_a_program_does(command: str) -> None:
    order = "Never delete pods in prod."
    [finding] = only(compacted([user(order)], [summary()], ran(command))).findings
    assert finding.later == ()


def test_a_command_that_is_allowed_under_a_condition_shows_nothing() -> None:
    order = "Never run git push without the tests."
    [finding] = only(compacted([user(order)], [summary()], ran("git push origin main"))).findings
    assert finding.later == ()


def test_an_encrypted_summary_is_unreadable_and_nothing_is_lost() -> None:
    found = only(compacted(*SEALED))
    assert (found.is_unreadable, found.findings, found.beside) == (True, (), 1)
    assert texts(only(compacted(*SEALED), by="None.")) == [ORDER]


def test_another_summary_is_measured_in_place_of_the_hosts() -> None:
    made = compacted([user(ORDER)], [summary(), user("The port is 8081.")])
    assert texts(only(made)) == [ORDER]
    assert texts(only(made, by=EXTRACTIVE)) == []
    assert texts(only(made, by="Never push to main!")) == []
    assert texts(only(compacted([user(ORDER)], [summary(ORDER)]), by="Nothing.")) == [ORDER]


def test_the_words_of_a_later_summary_are_no_later_statement() -> None:
    made = compacted([user(ORDER)], [summary()], [summary("It pushed to main, never mind.")])
    [finding] = only(made).findings
    assert finding.later == ()
