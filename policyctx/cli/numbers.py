"""Numbers as tables show them: short, and with a sign that stands out."""

from __future__ import annotations

_THOUSAND = 1_000


def short(number: int) -> str:
    """Return a number in at most five characters: `812`, `16.2k`, `1.35M`."""
    if number < _THOUSAND:
        return str(number)
    for unit in "kMG":
        value = number / _THOUSAND ** ("kMG".index(unit) + 1)
        if value < _THOUSAND - 0.5 or unit == "G":
            return f"{value:.3g}{unit}" if value < 100 else f"{value:.0f}{unit}"  # noqa: PLR2004
    raise AssertionError


def percent(share: float, *, digits: int = 0) -> str:
    """Return a signed share: `−45 %`, `+2 %`, `0 %`."""
    if share in {float("inf"), float("-inf")}:
        return "all"
    text = f"{100 * share:+.{digits}f} %".replace("-", "−")
    return text[1:] if float(f"{100 * share:.{digits}f}") == 0 else text


def signed_dollars(amount: float, unit: str = "") -> str:
    """Return signed dollars: `−12.34`, `+0.41`, `0.00`; with a unit it follows the sign."""
    sign = "" if float(f"{amount:.2f}") == 0 else "+" if amount > 0 else "−"
    return f"{sign}{unit}{abs(amount):,.2f}"
