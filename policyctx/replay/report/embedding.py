"""Values and scripts inside of a page of HTML, so that nothing in them is taken for markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re

# JSON escapes for what a parser of HTML might end a script at, and for what old parsers of
# JavaScript take for the end of a line.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
_ENDING = re.compile(r"</script|<!--|<script", re.IGNORECASE)


def json_script(element_id: str, value: object) -> str:
    """Return an element that holds a value as JSON and runs nothing.

    Its characters can all be written as UTF-8 with `backslashreplace`: a lone surrogate becomes
    its own JSON escape.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f'<script type="application/json" id="{element_id}">{text.translate(_ESCAPES)}</script>'


def inline_script(source: str) -> tuple[str, str]:
    """Return a script element, and the hash by which a Content-Security-Policy lets it run.

    Raises `ValueError` for a source that HTML would not read to its end.
    """
    if found := _ENDING.search(source):
        raise ValueError(f"a script with {found[0]!r} cannot stand in a page")
    # A parser of HTML knows one kind of line end, and hashes what it has read.
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"<script>{text}</script>", f"'sha256-{digest}'"
