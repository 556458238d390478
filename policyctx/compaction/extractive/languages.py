"""`Language`: the words of a language that rank sentences, and all languages as one table.

The words only rank. What a user says in a language without a table is kept as well, since who said
it, and which exact values are in it, weigh more than any word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Language:
    """The cues of one language, each a word or phrase in lower case.

    Where letters are ASCII a cue is found as a whole word, elsewhere anywhere in the text.
    """

    name: str
    orders: tuple[str, ...] = ()
    """Obligations, prohibitions, preferences and limits."""
    errands: tuple[str, ...] = ()
    """Words of orders that hold for one act rather than for all later work, such as `please`."""
    wishes: tuple[str, ...] = ()
    """Words of lasting wishes, aims, decisions, and of who is responsible for what."""
    negations: tuple[str, ...] = ()
    """Words that make an order a prohibition."""
    news: tuple[str, ...] = ()
    """Words with which an agent says what it decided, found or could not do, and what is open."""
    standing: tuple[str, ...] = ()
    """Words of orders and limits that hold for all later work."""
    remarks: tuple[str, ...] = ()
    """Phrases with such a word that report something, such as `i don't`."""
    revisions: tuple[str, ...] = ()
    """Words beside a changed value: an order and a text are compared without them."""
    failures: tuple[str, ...] = ()
    """How a failed result begins."""
    abbreviations: tuple[str, ...] = ()
    """Words whose full stop does not end a sentence."""


def _words(text: str) -> tuple[str, ...]:
    """Return the cues in a text, which are separated by `|`."""
    return tuple(one.strip() for one in text.replace("\n", " ").split("|") if one.strip())


ENGLISH = Language(
    name="English",
    orders=_words(
        """must|mustn't|never|always|don't|do not|dont|cannot|can't|not|no|only|avoid|without|unless
        |except|should|shouldn't|need|needs|ensure|make sure|require|required|requires|have to
        |has to|stick|prefer|want|rather|please|keep|leave|forbidden|allowed|off limits|at most
        |at least|no more than|limit|maximum|minimum|max|under|within|before|until|deadline
        |by default|remember|forget|careful|important|nothing|nobody|every|refrain|stop|hands off
        |may not|forbid|forbids"""
    ),
    errands=_words(
        """please|can you|could you|before|until|want|need|let's|now|start|show|check|look|have to
        |leave|within|not|no|under"""
    ),
    wishes=_words(
        """prefer|preference|i like|i'd like|i hate|i love|rather|style|tone|format|formatting
        |wording|from now on|whenever|in general|instead of|always|never|no tables|bullets|short
        |concise|i want|ideally|avoid|contact|talk to|ask|in charge|responsible|owner|owns|boss
        |manager|supervisor|lead|head of|colleague|approves|sign off|signs off|handles|client
        |customer|reviewer|goal|aim|target|objective|purpose|success|the point is|what matters
        |we want|in the end|should end up|decided|decision|agreed|settled|going with|we go with
        |will use|we use|picked|final|because|confirmed|reason"""
    ),
    news=_words(
        """decided|chose|settled|going with|because|reason|found|confirmed|result|failed|didn't
        |not yet|still|open|pending|waiting|until"""
    ),
    negations=_words(
        """not|never|no|nor|without|avoid|forbidden|stop|refrain|except|unless|prohibited|forbid
        |forbids|cannot|can't|don't|do not|mustn't|hands off|off limits|exclude|out of scope"""
    ),
    standing=_words(
        """must|mustn't|never|always|don't|do not|dont|avoid|without|only|should|shouldn't|at most
        |at least|no more than|no less than|maximum|minimum|unless|make sure|ensure|prefer
        |from now on|whenever|every time|by default|remember|hands off|off limits|forbidden
        |not allowed|may not|refrain|under no circumstances|stick to|stick with|rather than"""
    ),
    remarks=_words(
        """i don't|i do not|i dont|we don't|we do not|we dont|they don't|they do not|you don't
        |you do not|you dont|which don't|that don't|it only|it never|it always|is only|are only
        |is always|are always|is never|are never|i never|i should|should i|should we|not only
        |don't worry|don't know|don't you|never mind|don't think|i only|don't exist|don't seem
        |don't understand|don't remember|they always|they never|i always|as always|has always
        |have always|was always|were always|has never|have never|had never|was never|were never
        |i've never|almost always|almost never|at least it|at least now|at least that|at least i
        |every time i|every time it|every time we|whenever i|whenever it|must have been
        |must be a bug|should work|should be fine|you should be able|only happens|only works
        |only seems|only problem|only issue|only question|only reason|only difference
        |i remember|can't remember"""
    ),
    revisions=_words(
        """now|actually|instead|rather|please|then|make it|make that|change|changed|update|updated
        |new|sorry|correction|ok|so|set|use|the|a|an|is|are|to|of|for|be|we|it|that|and|in|should
        |from now on|let's|at|on|i|you|he|she|they|me|my|your|our|their|its|this|these|those
        |there|here|what|which|who|when|where|why|how|if|than|with|from|into|about|some|any|all
        |more|most|other|such|very|much|many|well|even|still|yet|else|anything|something
        |everything|thing|things|stuff|just|really|also|too|like|get|got|do|does|did|done|was
        |were|been|being|have|has|had|by|or|but|as|would|could|can|may|might|will"""
    ),
    failures=_words(
        """error|traceback|exception|failed|failure|fatal|not found|denied|no such|cannot|panic
        |unable|refused|timed out|timeout|invalid"""
    ),
    abbreviations=_words(
        """mr|mrs|ms|dr|prof|st|jr|sr|e.g|i.e|etc|vs|cf|approx|dept|fig|figs|vol|resp|esp|incl
        |excl|misc|al|pp|no|ch|sec"""
    ),
)

CHINESE = Language(
    name="Chinese",
    orders=_words(
        """必须|一定|务必|不要|别|不能|不可|不得|禁止|不许|切勿|勿|只能|只|仅|除非|除了|应该|应当
        |需要|要|请|确保|保证|最多|至少|不超过|不少于|上限|下限|以内|之前|截止|默认|希望|偏好|喜欢
        |更想|宁可|记得|记住|保留|保持|千万|注意|避免|统一|先|不准|无需|不用|严禁|所有|每|都|想|得
        |限制"""
    ),
    errands=_words("帮我|请|先|想|要|看看|需要|得|之前|都|麻烦"),
    wishes=_words(
        """喜欢|偏好|最好|尽量|一律|统一|以后|习惯|讨厌|不爱|风格|格式|语气|希望|宁可|更想|倾向
        |别写|不要用|别用|找|联系|负责|对接|老板|经理|主管|领导|同事|老师|问|管|点头|签字|审批|法务
        |财务|客户|接口人|叫|目标|目的|为了|指标|最终|要达到|成功|验收标准|决定|选择|选用|采用|确定
        |因为|确认|定为|定了|拍板|敲定|选定"""
    ),
    news=_words("决定|定|改为|因为|原因|发现|确认|结果|失败|还没|未|正在|等"),
    negations=_words("不|别|勿|禁|无|非|没有|严禁|除了|除非|避免"),
    standing=_words(
        """必须|务必|不要|别|不能|不可|不得|禁止|不许|切勿|只能|除非|最多|至少|不超过|不少于|上限
        |下限|默认|记得|记住|千万|避免|严禁|一律|统一|以后|宁可|不准"""
    ),
    revisions=_words(
        """现在|今后|以后|起|新|已经|目前|吧|改成|改为|改用|换成|改到|调整为|调到|还是|其实|不对
        |更正|请|把|的|了|为|到|是|在|用|就|设"""
    ),
    failures=_words("错误|失败|异常|找不到|无法|拒绝|超时|不存在|无效"),
)

GERMAN = Language(
    name="German",
    orders=_words(
        """muss|müssen|darf|dürfen|nie|niemals|immer|nicht|kein|keine|keinen|nur|ohne|höchstens
        |mindestens|maximal|bitte|soll|sollen|sollte|vermeide|spätestens|bis|verboten|erlaubt"""
    ),
    standing=_words(
        """muss|müssen|darf|dürfen|nie|niemals|immer|kein|keine|keinen|nur|ohne|höchstens|mindestens
        |maximal|vermeide|verboten|sollte|sollen|auf keinen fall|ab jetzt|lieber"""
    ),
    wishes=_words("lieber|bevorzuge|ziel|zuständig|entschieden|wichtig|wir nehmen"),
    news=_words("entschieden|weil|ursache|gefunden|fehlgeschlagen|noch nicht|offen|läuft|ergebnis"),
    negations=_words("nicht|nie|niemals|kein|keine|keinen|ohne|außer|verboten"),
    failures=_words("fehler|nicht gefunden|fehlgeschlagen"),
    abbreviations=_words("hr|fr|nr|str|z.b|d.h|u.a|bzw|ggf|inkl|evtl|vgl|usw|ca|abs|tel"),
)

FRENCH = Language(
    name="French",
    orders=_words(
        """doit|dois|doivent|jamais|toujours|ne pas|pas de|n'|aucun|aucune|seulement|uniquement
        |sans|au plus|au moins|maximum|minimum|veuillez|s'il te plaît|s'il vous plaît|évite|éviter
        |interdit|avant le|il faut"""
    ),
    standing=_words(
        """doit|doivent|jamais|toujours|ne pas|aucun|aucune|uniquement|sans|au plus|au moins|évite
        |éviter|interdit|il faut|désormais|plutôt"""
    ),
    wishes=_words("préfère|objectif|responsable|décidé|important|plutôt"),
    news=_words("décidé|parce que|cause|trouvé|échoué|pas encore|en cours|résultat"),
    negations=_words("ne|pas|jamais|aucun|aucune|sans|sauf|interdit"),
    failures=_words("erreur|introuvable|échec"),
    abbreviations=_words("m|mme|mlle|etc|p.ex|env"),
)

SHIPPED = (ENGLISH, CHINESE, GERMAN, FRENCH)


class Presence(NamedTuple):
    """Cues of one meaning, in all languages: those of ASCII letters are whole words."""

    words: re.Pattern[str]
    parts: re.Pattern[str]

    def found_in(self, text: str) -> bool:
        """Whether the text has any of them."""
        folded = text.casefold()
        return bool(
            self.words.search(folded) or (not folded.isascii() and self.parts.search(folded))
        )

    def count_in(self, text: str) -> int:
        """Return how many different cues the text has."""
        folded = text.casefold()
        found = set(self.words.findall(folded))
        return len(found if folded.isascii() else found | set(self.parts.findall(folded)))

    def removed_from(self, text: str) -> str:
        """Return the folded text without any of them."""
        folded = self.words.sub(" ", text.casefold())
        return folded if folded.isascii() else self.parts.sub("", folded)


class Cues(dict[str, Presence]):
    """The tables of some languages as one, by the names of the fields of `Language`."""

    def __getattr__(self, name: str) -> Presence:
        """Return the cues of one meaning."""
        return self[name]


@lru_cache(maxsize=16)
def cues_of(languages: tuple[Language, ...] = SHIPPED) -> Cues:
    """Return the tables of the languages as one."""
    names = [field.name for field in fields(Language)]
    return Cues(
        {name: _presence([w for one in languages for w in getattr(one, name)]) for name in names}
    )


def _presence(cues: list[str]) -> Presence:
    # The longest first, so that a phrase is found before a word in it.
    ordered = sorted({cue.casefold() for cue in cues}, key=lambda cue: (-len(cue), cue))
    words = "|".join(re.escape(cue) for cue in ordered if cue.isascii() or cue[0].isascii())
    parts = "|".join(
        re.escape(cue) for cue in ordered if not cue.isascii() and not cue[0].isascii()
    )
    return Presence(
        re.compile(rf"(?<![\w'-])(?:{words})(?![\w-])" if words else "(?!)"),
        re.compile(parts or "(?!)"),
    )
