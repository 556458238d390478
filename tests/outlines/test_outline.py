"""The outline of a text, by its kind."""

import json
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.outlines.outline import outline
from policyctx.tokens.counter import counter_for
from tests.growing import grows_at_most

EXACT = counter_for("o200k_base")
PARTS = [
    *'ab1:/.{}[]",-+@| \n\t\r\\é字#*→',
    "\x1b[2K",
    "=== a\n",
    "--- b\n",
    "```py\n",
    "error: 'x'",
]
PARTS.append(json.dumps({"a": "one\n" * 60}) + "\n")
TEXTS = st.lists(st.sampled_from(PARTS), max_size=200).map("".join)


def outlined(text: str, tokens: int = 200) -> str:
    found = outline(text, tokens, EXACT)
    assert EXACT.count(found) <= tokens
    return found


def test_a_text_that_fits_is_its_own_outline() -> None:
    assert outlined("one\ntwo\n") == "one\ntwo\n"


def test_json_is_shown_by_its_shape_and_its_odd_rows() -> None:
    rows = [{"id": i, "state": "failed" if i == 61 else "done", "tag": {"a": i}} for i in range(90)]
    found = outlined(json.dumps({"total": 90, "jobs": rows}), 160)
    assert "total=90" in found
    assert "jobs: 90 rows" in found
    assert "state (done ×89, failed ×1)" in found
    assert "61 | failed | 61" in found


def test_a_row_of_json_in_lines_has_its_line() -> None:
    lines = [json.dumps({"level": "info", "step": i}) for i in range(200)]
    lines[120] = json.dumps({"level": "info", "step": 120, "error": "disk full"})
    assert "\n121 step=120, error=disk full\n" in outlined("\n".join(lines))


def test_records_between_text_have_their_lines_and_their_short_values() -> None:
    records = [
        {"note": "A long remark. " * 12, "id": i, "state": "open" if i % 7 else "shut", "by": None}
        for i in range(40)
    ]
    records[9] |= {"by": "ann", "file": "src/a.py:9"}
    text = "".join(f"Answer {i}\n{json.dumps(one, indent=1)}\n" for i, one in enumerate(records))
    found = outlined(text + "[the rest was cut off]\n", 400)
    begin = text[: text.index("Answer 9\n")].count("\n") + 2
    assert f"\n{begin} id=9, state=open, by=ann, file=src/a.py:9" in found
    assert "state (open ×34, shut ×6)" in found
    assert "\n2 id=0, state=shut, by=null" in found


def test_the_place_in_a_long_line_is_a_character() -> None:
    text = json.dumps([{"name": f"n{i}", "size": i} for i in range(300)])
    place = text.index('{"name": "n299"') + 1
    assert f"1:{place} n299 | 299" in outlined(text)


def test_a_long_string_in_json_is_outlined_by_its_kind_with_places() -> None:
    code = "import os\n\n" + "".join(
        f'def step_{i}(value):\n    """\U0001f600"""\n    return value + {i}\n\n' for i in range(20)
    )
    text = json.dumps({"exit": 0, "stdout": code})
    found = outlined(text, 400)
    assert f"1:{text.index('import os') + 1} stdout: code, 82 lines" in found
    assert all(
        f"1:{text.index(f'def step_{i}(') + 1} def step_{i}(value):" in found for i in range(9)
    )


def test_markdown_in_json_in_json_has_places() -> None:
    words = "".join(f"## Part {i}\n\n{'A long sentence about it. ' * 20}\n\n" for i in range(6))
    text = json.dumps([{"content": json.dumps({"text": words})}])
    found = outlined(text, 300)
    assert all(f"1:{text.index(f'## Part {i}') + 1} ## Part {i}" in found for i in range(6))


def test_lines_that_differ_little_are_one_and_errors_stay() -> None:
    lines = [f"12:00:{i:02} GET /items/{i} 200" for i in range(300)]
    lines[140] = "12:02:20 ERROR cannot connect to db-7"
    lines.append("300 tests, 1 failed")
    found = outlined("\n".join(lines)).split("\n")
    assert any(
        line.startswith("1 12:00:00 GET") and "(×299 in 300 lines)" in line for line in found
    )
    assert "141 12:02:20 ERROR cannot connect to db-7" in found
    assert "301 300 tests, 1 failed" in found


def test_counts_behind_their_names_are_totals() -> None:
    lines = [f"{'abcdefgh'[i % 8] * 5} step {i} of the run" for i in range(90)]
    lines[70:70] = ["Total tests: 41", "Passed: 40", "Quality failures: 1"]
    found = outlined("\n".join(lines), 100)
    assert "\n71 Total tests: 41\n72 Passed: 40\n73 Quality failures: 1" in found


def test_a_diff_is_shown_by_its_files_and_hunks() -> None:
    part = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1,9 +1,9 @@ def run():\n"
    body = "".join(f"+new line {i}\n-old line {i}\n same {i}\n" for i in range(40))
    found = outlined(part.format("src/a.py") + body + part.format("src/b.py") + body, 120)
    assert "1 src/a.py +40 −40" in found
    assert "125 src/b.py +40 −40" in found
    assert "4 @@ -1,9 +1,9 @@ def run():" in found


def test_search_hits_are_shown_by_file() -> None:
    hits = [f"src/module_{i % 3}.py:{i}: call(number_{i})" for i in range(1, 91)]
    found = outlined("\n".join(sorted(hits)))
    assert "src/module_0.py: 30: " in found
    assert "src/module_2.py: 30: " in found


def test_the_lines_around_search_hits_are_not_counted_and_come_last() -> None:
    part = "src/{0}.py-{1}-value_{1} = {1}\nsrc/{0}.py:{2}:call(number_{2})\n--\n"
    hits = "".join(part.format("ab"[i > 20], i * 9, i * 9 + 1) for i in range(1, 41))
    found = outlined(hits, 340)
    assert "\n2 src/a.py: 20: 10, 19, 28" in found
    assert "value_" not in found
    assert "also: " not in found


def test_the_names_in_messages_of_one_code_have_their_lines() -> None:
    message = "src/{0}/index.ts({1},1): error TS2304: Cannot find name '{2}'."
    lines = [message.format("ab"[i % 2], i, f"thing{i // 20}") for i in range(100)]
    found = outlined("\n".join(lines))
    assert "1 src/a/index.ts(0,1): error TS2304: Cannot find name 'thing0'. (×100 in" in found
    assert all(
        f"\n{i * 20 + 1} src/a/index.ts({i * 20},1): … thing{i}" in found for i in range(1, 5)
    )


def test_files_of_one_name_keep_their_folder_in_the_list_of_names() -> None:
    hits = [f"src/part_{i}/index.py:{n}: call({n})" for i in range(30) for n in (3, 8)]
    assert "part_1/index.py, " in outlined("\n".join(hits), 240).partition("also: ")[2]


def test_code_is_shown_by_its_definitions() -> None:
    code = "import os\nimport sys\n\n" + "".join(
        f"class Case{i}:\n    def run(self, value):\n        step = value + 1\n"
        f"        other = step * 2\n        return other\n\n"
        for i in range(12)
    )
    found = outlined(code, 260)
    assert "1 imports in 2 lines: import os; import sys" in found
    assert all(f"{4 + 6 * i} class Case{i}:" in found for i in range(12))


def test_a_line_of_code_that_repeats_leaves_room_for_others() -> None:
    part = "func step{0}() error {{\n\tif err := call{0}(); err != nil {{\n\t\treturn err\n\t}}\n"
    code = "".join(part.format(i) + "\treturn nil\n}\n\n" for i in range(20))
    found = outlined(code, 420)
    assert all(f" if err := call{i}(); err != nil" in found for i in range(20))


def test_numbers_that_a_host_put_before_lines_are_left_out_and_said() -> None:
    code = "".join(f"{n:6}→def name_{n}(value):\n" for n in range(501, 620))
    found = outlined(code)
    assert "the text's own numbers are 500 more" in found
    assert "1 def name_501(value):" in found


def test_prose_is_shown_by_its_headings() -> None:
    text = "".join(f"## Part {i}\n\n{'A long sentence about it. ' * 20}\n\n" for i in range(8))
    found = outlined(text)
    assert all(f"{1 + 4 * i} ## Part {i}" in found for i in range(8))


def test_markdown_with_code_is_shown_by_its_headings_and_fences() -> None:
    part = "## Part {0}\n\n```python\n# not a heading\nvalue = call({0})\nreturn value\n```\n\n"
    found = outlined("".join(part.format(i) * (1 + i % 2) for i in range(9)), 300)
    assert "outline: prose" in found
    assert all(f" ## Part {i}\n" in found for i in range(9))
    assert "\n3 ```python\n" in found


@pytest.mark.parametrize("separator", ["=== {} ===", "--- {}", "+ {}", "==> {} <=="])
def test_outputs_of_several_commands_are_sections(separator: str) -> None:
    code = "".join(f"def step_{i}(value):\n    return value\n\n" for i in range(40))
    listing = "".join(f"-rw-r--r--  1 me  us  {i}00 Sep  4 15:43 f{i}.py\n" for i in range(1, 30))
    log = "".join(f"step {i} ok\n" for i in range(50)) + "error: disk full\n"
    first, second, third = map(separator.format, ["cat a.py", "ls -l", "make"])
    found = outlined(f"{first}\n{code}\n{second}\n{listing}\n{third}\n{log}", 300)
    assert f"\n1 {first} (code)\n" in found
    assert f"\n123 {second} (a listing)\n" in found
    assert f"\n154 {third} (output)\n" in found
    assert "\n2 def step_0(value):\n" in found
    assert "\n155 step 0 ok (×50 in 50 lines)\n" in found
    assert "\n205 error: disk full" in found


def test_what_a_terminal_drew_over_is_left_out() -> None:
    frames = "".join(f"\x1b[2K\r\x1b[36m⠋\x1b[0m installing {i} of 90" for i in range(91))
    lines = [f"{'abcdefgh'[i % 8] * 5} done {i}" for i in range(80)]
    found = outlined("\n".join([frames + "\x1b[K\r", *lines, "50%\r100%\r", "error: no\r"]))
    assert "\n1 ⠋ installing 90 of 90\n" in found
    assert "\n82 100%\n83 error: no" in found


def test_a_last_line_of_terminal_codes_after_json_is_no_error() -> None:
    assert "outline: JSON" in outlined(json.dumps({"a": "one two " * 400}) + "\n\x1b[2K\r", 60)


def test_half_a_character_in_json_can_be_sent() -> None:
    rows = [{"a": f"\ud83d {i}", "b": f"\ud83d {i} " * 60} for i in range(90)]
    assert "? 89" in outlined(json.dumps(rows), 300).encode().decode()


def test_a_listing_is_shown_in_few_rows() -> None:
    names = [f"-rw-r--r--  1 me  staff  {i}00 Sep  4 15:43 file{i}.py" for i in range(1, 40)]
    assert "1 file1.py 100, file2.py 200" in outlined("\n".join(names))


def test_a_table_is_shown_by_what_its_columns_span() -> None:
    rows = [f"{i},{'north' if i % 2 else 'south'},{i * 3}" for i in range(100)]
    found = outlined("\n".join(["id,region,sold", *rows]))
    assert "rows: 100 rows" in found
    assert "id (0..99) | region (south ×50, north ×50) | sold (0..297)" in found


def test_a_folder_that_many_rows_have_is_said_once() -> None:
    lines = [f"/home/me/project/src/deep/file{i}.c:{i}: error: wrong {i}" for i in range(60)]
    lines = [line.replace("wrong", "abcdefgh"[i % 8] * 4) for i, line in enumerate(lines)]
    found = outlined("\n".join(lines))
    assert found.count("/home/me/project/src/deep/") == 1


@given(TEXTS, st.integers(0, 60))
def test_every_row_is_at_a_line_of_the_text_and_the_limit_holds(text: str, tokens: int) -> None:
    found = outlined(text, tokens)
    assert found == outline(text, tokens, EXACT)
    places = [row.partition(" ")[0] for row in found.split("\n")[1:]]
    lines = text.count("\n") + 1
    if found != text:
        assert all(int(p.partition(":")[0]) <= lines for p in places[:-1] if p[:1].isdigit())


def _log(size: int) -> str:
    words = ["alpha", "beta/gamma", "error:", "12", "{", "def run():", "a.b.c.d", "x | y"]
    return "\n".join(" ".join(words[i * k % 7] for k in range(8)) for i in range(size))


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [
        _log,
        lambda size: json.dumps([{"a": i, "b": {"c": [i]}} for i in range(size)]),
        lambda size: "word. " * size * 8,
        lambda size: "\n".join("a.-1:" * 40 for _ in range(size // 4)),
    ],
)
def test_the_time_grows_with_the_length(made: Callable[[int], str]) -> None:
    assert grows_at_most(lambda size: partial(outline, made(size), 100, EXACT), 2_000, times=4)


@pytest.mark.parametrize("text", ["[" * 20_000, '[{"a":' * 300 + "1" + "}]" * 300])
def test_deep_json_is_no_error(text: str) -> None:
    assert outlined(text * 2, 50)
