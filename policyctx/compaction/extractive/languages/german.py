"""The cues of German. They only rank: which of two statements holds is not known by them."""

from __future__ import annotations

from policyctx.compaction.extractive.languages.language import Language

GERMAN = Language(
    name="German",
    orders=(
        "muss", "müssen", "musst", "müsst", "niemals", "nie", "immer", "nicht", "kein", "keine",
        "keinen", "keinem", "keiner", "nur", "höchstens", "mindestens", "maximal", "bitte", "soll",
        "sollen", "sollte", "darf", "darfst", "dürfen", "verboten", "erlaubt", "unbedingt", "ohne",
        "außer", "vermeide", "vermeiden", "spätestens", "bis", "frist", "obergrenze", "grenze",
        "lieber", "möchte", "wollen", "brauche", "braucht", "wichtig", "vorsicht", "finger weg",
        "behalte", "behalten", "statt", "jede", "jeder", "jedes", "ausschließlich",
        "auf keinen fall",
    ),
    choices=(
        "entschieden", "entscheidung", "beschlossen", "festgelegt", "gewählt", "weil", "grund",
        "ursache", "gefunden", "bestätigt", "ergebnis", "behoben", "lag an", "nehmen wir", "fazit",
    ),
    setbacks=(
        "fehlgeschlagen", "scheitert", "gescheitert", "verworfen", "klappt nicht", "ging nicht",
        "geht nicht", "aufgegeben", "abgebrochen", "funktioniert nicht", "abgelehnt",
        "zurückgerollt",
    ),
    remedies=("behoben", "gelöst", "repariert", "läuft wieder", "geht wieder"),
    unfinished=(
        "noch nicht", "noch", "offen", "ausstehend", "wartet", "fehlt", "fehlen", "läuft",
        "steht aus",
    ),
    wanted_failures=("soll fehlschlagen", "wie erwartet", "schlägt erwartungsgemäß fehl"),
    all_tasks=("alle aufgaben", "alle punkte", "alle schritte"),
    nothing_open=("nichts", "keine offenen", "keine weiteren"),
    withdrawals=("vergiss", "lass weg", "nicht mehr nötig", "brauchen wir nicht", "überspringe"),
    objections=(
        "nein", "nee", "nö", "nicht so", "nicht das", "falsch", "lieber", "eher", "auf keinen fall",
        "stattdessen",
    ),
    refusals=("bitte nicht", "nicht", "niemals", "keinesfalls", "lass das"),
    acknowledged=(
        "danke", "super", "gut", "prima", "genau", "passt", "klar", "alles", "verstanden", "hallo",
        "guten", "morgen", "tag", "abend", "gerne", "bitte", "sehr", "schön", "tschüss", "mach",
        "weiter", "ja", "vielen", "dank", "moin", "perfekt",
    ),
    errands=("bitte", "kannst du", "können sie", "nicht", "bis", "noch", "möchte", "brauche"),
    wishes=(
        "lieber", "bevorzuge", "am liebsten", "stil", "ton", "format", "ab jetzt", "künftig", "mag",
        "grundsätzlich", "immer", "kurz", "knapp", "gern", "wünsche",
    ),
    roles=(
        "ansprechpartner", "ansprechpartnerin", "zuständig", "verantwortlich", "frag", "fragen",
        "chef", "chefin", "leiter", "leiterin", "kollege", "kollegin", "herr", "frau", "kunde",
        "kundin", "kontakt", "genehmigt", "betreut",
    ),
    aims=("ziel", "zweck", "am ende", "erfolg", "vorgabe"),
    states=("stand", "aktuell", "derzeit", "bisher", "status", "offen", "erledigt", "versucht"),
)  # fmt: skip
