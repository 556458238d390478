from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from policyctx.errors import PolicyError
from policyctx.policy.consistency import inconsistencies
from policyctx.policy.findings import findings
from policyctx.policy.loading import extended, parsed_policy
from policyctx.policy.models import Policy
from policyctx.policy.nodes import read_yaml
from policyctx.policy.schema import explained, keys, policy_schema
from policyctx.policy.sources import PolicySource
from policyctx.policy.writing import inline
from scripts.generate import derived_files, stale_files
from scripts.reference import NOTES, reference
from tests.policies import HEAD
from tests.policy.codes import ERRORS, FINDINGS

ROOT = Path(__file__).parents[2]
PAGE = reference()


def test_derived_files_are_up_to_date() -> None:
    assert stale_files(ROOT) == [], "run scripts/docs"


@pytest.mark.slow
def test_an_outdated_derived_file_is_reported(tmp_path: Path) -> None:
    assert stale_files(tmp_path) == list(derived_files())
    for path, text in derived_files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8", newline="\n")
    (tmp_path / "docs" / "steps.md").write_text("stale", encoding="utf-8")
    assert stale_files(tmp_path) == ["docs/steps.md"]


def test_every_key_has_a_line_and_every_map_of_several_keys_a_section() -> None:
    schema = policy_schema()
    for key in keys(schema):
        assert re.search(rf"^ *- `{key.name}` \(", PAGE, re.MULTILINE), key.path
    sections = [line for line in PAGE.splitlines() if line.startswith("#")]
    assert (
        len(sections)
        == len(set(sections))
        == sum(len(one.get("properties", "")) > 1 for one in schema["$defs"].values())
        + len(("title", "how", "top"))
    )
    assert NOTES.keys() <= schema["$defs"].keys()


def test_every_link_in_the_page_leads_to_a_section() -> None:
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
    links = set(re.findall(r"\]\(#([^)]+)\)", PAGE))
    assert links <= anchors
    assert len(links) > 20


def test_the_policy_at_the_top_is_without_findings_and_has_each_part_of_the_language() -> None:
    [example] = re.findall(r"^    apiVersion: (?:.+\n)+?(?=\n)", PAGE, re.MULTILINE)
    root = extended(PolicySource("example.yaml", textwrap.dedent(example)), {}).root
    policy = Policy.model_validate(root.plain())
    assert [*inconsistencies(root), *findings(root, policy)] == []
    parts = {"model", "items", "tools", "placeholder", "store", "compaction", "steps"}
    assert parts <= policy.model_fields_set


def test_a_key_has_its_type_its_default_and_its_meaning() -> None:
    assert "- `context_window` (whole number above 0; `200000`): Tokens" in PAGE
    assert "- `name` (text; required): What the policy is called." in PAGE
    assert "- `keep_recent` (whole number or [map](#keep_recent)): The newest" in PAGE
    assert "- `tool` (text, or a list): " in PAGE
    assert "- `pin` (boolean): " in PAGE


def test_the_key_of_a_map_of_one_is_listed_below_it() -> None:
    assert (
        "- `tokens` (map): The list is this small.\n    - `under` (whole number or share;" in PAGE
    )


def test_a_key_of_several_maps_is_described_once() -> None:
    assert PAGE.count("No step takes it.") == 1
    assert "- `min_tokens`, `min_chars`: as in [items](#items)" in PAGE


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("items.keep_recent", ["whole number or map", "keep_recent: {items: 5, per: all}", "per "]),
        ("items.tool_result.keep_recent", ["whole number or map"]),
        ("items.tool_result", ["What a tool answered.", "pin "]),
        ("tools.Bash.pin", ["No step takes it."]),
        ("steps.when.tokens", ["at_least", "tokens: {at_least: 80%}"]),
        ("steps.make-room.when.tokens.over", ["share such as 10%"]),
        ("store.on_conflict", ["`suffix`, `overwrite` or `error`", "default  suffix"]),
        ("steps.do", ["required"]),
        ("placeholder.text", ["{path}"]),
    ],
)
def test_a_key_is_explained(key: str, said: list[str]) -> None:
    text = explained(key)
    assert text.startswith(f"{key}\n")
    assert [word for word in said if word not in text] == []


def test_a_built_in_type_has_no_match_to_explain() -> None:
    assert "\n    match " in explained("items")
    assert "\n    match " not in explained("items.tool_result")


def test_the_end_of_several_paths_lists_them_in_full() -> None:
    lines = explained("keep_recent").splitlines()
    assert [line.split()[0] for line in lines[2:]] == [
        "items.keep_recent",
        "tools.keep_recent",
        "compaction.keep_recent",
        "steps.select.keep_recent",
        "steps.compaction.keep_recent",
    ]
    assert "steps.select.until.frees.at_least" in explained("at_least")
    assert "compaction.keep_recent.tokens" in explained("keep_recent.tokens")


def test_the_end_of_one_path_is_explained_under_its_full_path() -> None:
    assert explained("when") == explained("steps.when")
    assert explained("on_conflict").startswith("store.on_conflict\n")


def test_a_built_in_type_is_explained_under_its_full_path() -> None:
    assert explained("tool_result") == explained("items.tool_result")
    assert explained("tool_result").startswith("items.tool_result\n")
    assert explained("tool_call.pin") == explained("items.tool_call.pin")


def test_a_key_of_the_top_level_is_not_listed_with_others_of_its_name() -> None:
    assert explained("min_tokens").startswith("min_tokens\n  At this many tokens")


@pytest.mark.slow
def test_every_key_can_be_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = policy_schema()
    # Building the schema for every key takes nearly all of the time.
    monkeypatch.setattr("policyctx.policy.schema.policy_schema", lambda: schema)
    for key in keys(schema):
        assert explained(key.dotted)
    assert schema == policy_schema()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("stor", "stor: PC101: unknown key 'stor'; did you mean 'store'?"),
        ("items.keep_recnt", "unknown key 'keep_recnt'; did you mean 'keep_recent'?"),
        ("items.tool_reslt", "unknown key 'tool_reslt'; did you mean 'tool_result'?"),
        ("tool_reslt", "unknown key 'tool_reslt'; did you mean 'tool_result'?"),
        ("tool_result.keep_recnt", "unknown key 'keep_recnt'; did you mean 'keep_recent'?"),
        ("tools.Bash.pinn", "unknown key 'pinn'; did you mean 'pin'?"),
        ("min_tokens.x", "PC101: unknown key 'x'"),
        ("", "unknown key ''; the keys here are apiVersion"),
    ],
)
def test_an_unknown_key_is_an_error_with_a_suggestion(key: str, message: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(message)):
        explained(key)


def test_a_value_is_shown_as_yaml_that_reads_back() -> None:
    for value in (
        "0600",
        "10%",
        "a: b",
        "on",
        "true",
        "",
        {"a": ["*", 1, None, False]},
        "a\nb",
        "~",
    ):
        assert read_yaml(PolicySource("", f"x: {inline(value)}")).plain() == {"x": value}


def raised_codes() -> set[str]:
    sources = ROOT.glob("policyctx/**/*.py")
    texts = [path.read_text(encoding="utf-8") for path in sources]
    return {code for text in texts for code in re.findall(r'"(PC\d+)"', text)}


def test_every_code_is_documented_and_every_documented_code_is_raised() -> None:
    assert {*ERRORS, *FINDINGS} == raised_codes()


NOT_IN_ONE_FILE = {"PC001", "PC202", "PC203", "PC205", "PC206", "PC207", "PC208"}


@pytest.mark.parametrize("code", sorted(set(ERRORS) - NOT_IN_ONE_FILE))
def test_the_example_of_a_code_raises_it_and_its_fix_does_not(code: str) -> None:
    wrong, right = re.findall(r"^    (.*)$", ERRORS[code], re.MULTILINE)
    head = HEAD + ("extends: coding-agent\n" if code == "PC204" else "")
    assert code in told(head + wrong)
    if code != "PC201":
        assert told(head + right) == []


def told(text: str) -> list[str]:
    try:
        parsed_policy(PolicySource("p.yaml", text), variables={})
    except PolicyError as error:
        return [diagnostic.code for diagnostic in error.diagnostics]
    return []
