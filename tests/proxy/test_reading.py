"""Who may read which offloaded text, by the paths that placeholders show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from policyctx.proxy.clients import OwnTexts
from policyctx.proxy.policies import Policies
from policyctx.proxy.turning import Turning
from tests.conversations import call, calls, results, session_of
from tests.proxy.test_turning import TEXTS, Proxied, texts_of

LONG = "".join(f"a line with the number {i}\n" for i in range(2_000))
_PATH = re.compile(r"Path: (\S+)")


class OverMcp(Proxied):
    """A turning whose placeholders name the tool of the proxy's MCP server."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.policies = Policies(folder / "p.yaml", over_mcp=True)
        self.turning = Turning(self.registry, self.policies, self.root)

    def path(self, *texts: str, scope: str = "k", session: str = "s") -> str:
        """Run a turn with some results, and return the path of the first one's text."""
        [placeholder, *_] = texts_of(self.turn(session_of(*texts), session, scope=scope))
        assert placeholder.count("read_offloaded") == 1
        found = _PATH.search(placeholder)
        assert found is not None, placeholder
        return found[1]

    def texts(self, *scopes: str) -> OwnTexts:
        return OwnTexts(self.root, scopes)


def read(texts: OwnTexts, path: object, offset: object = 1) -> Any:
    return texts.read(path, offset, 1000, 1)


def test_two_clients_with_one_session_id_read_each_its_own(tmp_path: Path) -> None:
    proxied = OverMcp(tmp_path)
    paths = {one: proxied.path(f"{one} " * 200, "x" * 400, scope=one) for one in ("one", "two")}
    assert paths["one"] != paths["two"]
    assert not any(str(tmp_path) in path for path in paths.values())
    for own, other in (("one", "two"), ("two", "one")):
        texts = proxied.texts(own, "another upstream")
        assert read(texts, paths[own]) == (f"{own} " * 200, False)
        assert read(texts, "./" + paths[own]).text == f"{own} " * 200
        assert read(texts, f"{proxied.root}/{paths[own]}").text == f"{own} " * 200
        unknown = paths[other][:-1] + "x"
        said = [read(texts, path).text.replace(path, "") for path in (paths[other], unknown)]
        assert said[0] == said[1]
        assert read(texts, paths[other]).is_error
        assert texts.search(other, paths[own]).text.startswith("[nothing offloaded")
        assert texts.search(own, paths[other]).is_error
        line, *_ = texts.search(own, paths[own]).text.splitlines()
        assert line.startswith(f"{paths[own]}:1: {own}")
    assert read(proxied.texts(), paths["one"]).is_error
    assert read(proxied.texts(""), paths["one"]).is_error


@pytest.fixture(scope="module")
def two_clients(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A root with sessions of two clients, and what the first of them may read."""
    folder = tmp_path_factory.mktemp("two")
    proxied = OverMcp(folder)
    own = proxied.path("own " * 200, "x" * 400)
    other = proxied.path("secret " * 200, "x" * 400, scope="other")
    (folder / "secret.txt").write_text("secret")
    session, _, file = own.partition("/")
    (proxied.root / "link").symlink_to(proxied.root / session)
    (proxied.root / "link-of-other").symlink_to(folder)
    known = {"own": own, "other": other, "session": session, "file": file}
    return {"root": proxied.root, "texts": proxied.texts("k"), **known}


@pytest.mark.parametrize(
    "form",
    [
        "{root}/proxy.key",
        "proxy.key",
        "../root/{own}",
        "{session}/../{other}",
        "{session}/{root}/{other}",
        "{session}//{root}/{other}",
        "{session}/.policyctx/{session}/journal.jsonl",
        "{session}/../../secret.txt",
        "{session}\x00/{file}",
        "{session}/{file}\x00",
        "/etc/passwd",
        "{session}//etc/passwd",
        "{session}/",
        "{session}",
        "link/{file}",
        "link-of-other/secret.txt",
        ".",
        "..",
        "/",
        "",
        "\udc80/x",
        "a" * 5_000,
        "{file}",
    ],
)
def test_a_hostile_path_is_an_error(two_clients: dict[str, Any], form: str) -> None:
    path, texts, root = form.format(**two_clients), two_clients["texts"], two_clients["root"]
    for answer in (read(texts, path), texts.search("secret", path)):
        assert answer.is_error or answer.text.startswith("[nothing offloaded")
        assert "secret secret" not in answer.text
        # It may repeat what was asked for.
        assert str(root) not in answer.text.replace(repr(path)[1:-1][:200], "")
        answer.text.encode()
    assert read(texts, path).is_error


@pytest.mark.parametrize("path", [None, 7, ["a"], {"a": 1}])
def test_a_path_that_is_no_text_is_an_error(tmp_path: Path, path: object) -> None:
    proxied = OverMcp(tmp_path)
    proxied.path("own " * 200, "x" * 400)
    assert read(proxied.texts("k"), path).is_error
    assert proxied.texts("k").search("own", path).is_error


def test_the_note_of_a_page_has_the_path_that_reads_on(tmp_path: Path) -> None:
    proxied = OverMcp(tmp_path)
    path = proxied.path(LONG, "x" * 400)
    texts = proxied.texts("k")
    page = read(texts, path).text
    note = re.fullmatch(r"\[.*read_offloaded\(path='(\S+)', offset=(\d+)\)\]", page.split("\n")[-1])
    assert note is not None
    assert note[1] == path
    rest = read(texts, note[1], int(note[2])).text
    assert page.rpartition("\n")[0] + "\n" + rest.partition("\n[")[0] in LONG + "\n"
    near = read(texts, path.replace("c0", "c00")).text
    assert f"did you mean {path!r}?" in near


def test_a_session_stays_readable_when_it_has_left_memory(tmp_path: Path) -> None:
    before = OverMcp(tmp_path)
    path = before.path(*TEXTS[:2])
    before.registry.close()
    after = OverMcp(tmp_path)
    assert read(after.texts("k"), path).text == TEXTS[0]
    assert after.path(*TEXTS[:3]) == path
    journal = (after.root / path.partition("/")[0]).glob(".policyctx/*/journal.jsonl")
    assert "".join(one.read_text() for one in journal).count("proxy_owner") == 1


def test_a_session_whose_owner_is_not_known_is_not_read(tmp_path: Path) -> None:
    proxied = OverMcp(tmp_path)
    path = proxied.path(*TEXTS[:2])
    [journal] = (proxied.root / path.partition("/")[0]).glob(".policyctx/*/journal.jsonl")
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if "proxy_owner" not in line))
    assert read(proxied.texts("k"), path).is_error


def test_an_altered_file_is_an_error_without_the_root(tmp_path: Path) -> None:
    proxied = OverMcp(tmp_path)
    path = proxied.path(*TEXTS[:2])
    (proxied.root / path).write_text("altered")
    answer = read(proxied.texts("k"), path)
    assert answer.is_error
    assert path in answer.text
    assert str(tmp_path) not in answer.text


@pytest.mark.parametrize("tool", ["read_offloaded", "mcp__policyctx__read_offloaded"])
def test_a_result_that_was_read_back_leaves_without_a_copy(tmp_path: Path, tool: str) -> None:
    proxied = OverMcp(tmp_path)
    policy = (tmp_path / "p.yaml").read_text()
    (tmp_path / "p.yaml").write_text(policy.replace("keep_recent: 1", "keep_recent: 0"))
    proxied.policies.reload()
    path = proxied.path(TEXTS[0])
    again = [
        *session_of(TEXTS[0]),
        call("r1", tool, {"path": path}),
        results(("r1", TEXTS[0])),
    ]
    for number in range(5):  # until it is none of the newest that were read back
        name = f"n{number}"
        again += [calls((name, tool)), results((name, TEXTS[number + 1]))]
    texts = texts_of(proxied.turn(again))
    assert texts[1] == texts[0]


def test_a_wording_with_an_id_alone_names_the_session(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        """\
apiVersion: policyctx/v1
name: ids
min_tokens: 20
items: {tool_result: {offload: true, keep_recent: 1}}
placeholder: "{{path}} is gone. read_offloaded with {item_id} ({tokens} tokens)"
steps: [{name: retire, do: offload}]
"""
    )
    policies = Policies(tmp_path / "p.yaml", over_mcp=True)
    text = policies.general.policy.placeholder.text
    assert text == "{{path}} is gone. read_offloaded with {session_id}/{item_id} ({tokens} tokens)"
