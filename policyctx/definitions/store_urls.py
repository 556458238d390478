"""How the root of a store is written where it is not a folder but a prefix in an object store."""

from __future__ import annotations

import re

SCHEMES = ("s3", "gs", "az", "file")
# The scheme whose URLs name no bucket but a folder.
_FOLDER = "file"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(/.*)?", re.DOTALL)


def is_url(root: str) -> bool:
    """Whether a root is written as a URL; every other text is the path of a folder."""
    return _URL.fullmatch(root) is not None


def url_problem(root: str) -> str:
    """Return what is wrong with the URL of a store; "" for nothing."""
    found = _URL.fullmatch(root)
    scheme, bucket, below = found.groups("") if found else ("", "", "")
    if scheme not in SCHEMES:
        known = ", ".join(f"{one}://" for one in SCHEMES)
        return f"expected a folder, or a URL that begins with one of {known}"
    inner = below.strip("/")
    problems = {
        "a URL must not contain credentials; they come from the environment alone": "@" in bucket,
        "a URL of a store has no query and no fragment": not {"?", "#"}.isdisjoint(root),
        "expected file:///FOLDER, with an absolute path": scheme == _FOLDER
        and bool(bucket or not inner),
        f"expected {scheme}://BUCKET/PREFIX": scheme != _FOLDER and not bucket,
        "a URL of a store has no empty, `.` or `..` parts": bool(inner)
        and not {"", ".", ".."}.isdisjoint(inner.split("/")),
    }
    return next((text for text, is_so in problems.items() if is_so), "")
