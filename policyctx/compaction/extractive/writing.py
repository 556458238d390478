"""How languages are written, as far as it decides where sentences end and which belong together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Writing:
    """The conventions of one language; words in lower case."""

    abbreviations: tuple[str, ...] = ()
    """Words whose full stop does not end a sentence, even before a capital letter."""
    months: tuple[str, ...] = ()
    """Names that come after the full stop of an ordinal: `14. März`."""
    before_ordinal: tuple[str, ...] = ()
    """Words before a number whose full stop makes it an ordinal: `im 3. Stock`."""
    dependents: tuple[str, ...] = ()
    """First words of a sentence that says nothing without the one before it."""
    negating: tuple[str, ...] = ()
    """Words of a heading, or of the line above a list, that say what shall not be."""
    quoting: tuple[str, ...] = ()
    """What is right before the colon above a text that a program wrote."""


ENGLISH = Writing(
    abbreviations=(
        "mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "gen", "capt", "lt", "rev", "hon",
        "e.g", "i.e", "etc", "vs", "cf", "approx", "dept", "fig", "figs", "vol", "resp", "esp",
        "incl", "excl", "misc", "w.r.t", "a.k.a", "al", "pp",
    ),
    months=(
        "january", "february", "march", "april", "may", "june", "july", "august", "september",
        "october", "november", "december",
    ),
    dependents=(
        "it", "its", "this", "that", "these", "those", "they", "them", "their", "he", "she", "same",
        "otherwise", "use it", "use them", "use that", "use this", "keep it", "keep them",
        "put it", "put them", "do it", "do that", "do this", "for that", "with that", "if so",
        "if not", "in that case",
    ),
    negating=(
        "not", "never", "no", "non", "none", "don't", "dont", "avoid", "without", "out of scope",
        "out-of-scope", "forbidden", "except", "unless", "instead of", "cannot", "can't",
    ),
    quoting=(
        "results in", "i get", "i got", "error", "errors", "error message", "output", "log", "logs",
        "trace", "stack trace", "traceback", "it prints", "it printed",
    ),
)  # fmt: skip

GERMAN = Writing(
    abbreviations=(
        "hr", "fr", "nr", "str", "z.b", "d.h", "u.a", "bzw", "ggf", "inkl", "evtl", "vgl", "usw",
        "ca", "abs", "dipl", "ing", "tel", "bspw", "sog",
    ),
    months=(
        "januar", "jänner", "februar", "märz", "april", "mai", "juni", "juli", "august",
        "september", "oktober", "november", "dezember",
    ),
    before_ordinal=(
        "am", "im", "vom", "zum", "zur", "der", "die", "das", "dem", "den", "des", "bis", "ab",
        "seit", "jeden", "jedes",
    ),
    dependents=("es", "das", "dies", "diese", "sie", "er", "sonst", "dafür", "damit", "davon"),
    negating=("nicht", "nie", "niemals", "kein", "keine", "keinen", "ohne", "außer", "verboten"),
    quoting=("fehler", "fehlermeldung", "ausgabe"),
)  # fmt: skip

OTHERS = Writing(
    abbreviations=("mme", "mlle", "sra", "srta", "dra", "dhr", "mw", "doc", "sig", "dott"),
    months=(
        "januari", "februari", "maart", "mei", "augustus", "januar", "marts", "maj", "juni",
        "juli", "oktober", "desember", "marraskuuta", "lokakuuta", "stycznia", "lutego", "marca",
        "kwietnia", "maja", "czerwca", "lipca", "sierpnia", "września", "października",
        "listopada", "grudnia",
    ),
)  # fmt: skip

CHINESE = Writing(
    dependents=("它", "这个", "那个", "这样", "那样", "否则", "不然"),
    negating=("不", "别", "勿", "禁止", "避免", "除了", "严禁"),
    quoting=("报错", "报错信息", "日志", "输出"),
)  # fmt: skip

SHIPPED = (ENGLISH, GERMAN, OTHERS, CHINESE)
