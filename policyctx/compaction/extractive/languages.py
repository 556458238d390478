"""`Language`: the words of a language that rank sentences, and all languages as one table.

The words only rank. What a user says in a language without a table is kept as well, since who said
it, and which exact values are in it, weigh more than any word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Language:
    """The cues of one language, each a word or phrase in lower case.

    Where letters are ASCII a cue is found as a whole word, elsewhere anywhere in the text. A cue
    with `^` begins a sentence; in `leave … alone` a clause goes on between its two parts, of which
    the first is the cue; `stop …ing` has one word behind it.
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
    permissions: tuple[str, ...] = ()
    """Words that allow something where no negation is beside them."""
    lifts: tuple[str, ...] = ()
    """Phrases that end an order or a limit, such as `no longer`."""
    conditions: tuple[str, ...] = ()
    """Negations that hold for what is behind them alone, such as `without`."""
    reports: tuple[str, ...] = ()
    """Negations that tell what happened, such as `did not`."""
    approvals: tuple[str, ...] = ()
    """Words by which the user is to be asked."""
    bounds: tuple[str, ...] = ()
    """Words of an upper limit, such as `at most`."""
    excesses: tuple[str, ...] = ()
    """Words that say what is above a limit: with a negation they are a bound."""
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
        |forbids|cannot|can't|don't|do not|dont|doesn't|mustn't|shouldn't|won't|isn't|aren't
        |hands off|off limits|exclude|out of scope|nothing|none|nobody|free of
        |under no circumstances|instead of|rather than|unchanged|untouched|stays as it is
        |stay as they are|stay away from|leave … alone|leave … as it is|leave … as they are
        |leave … as is|keep … as it is|keep … as they are|keep … as is|keep … unchanged|didn't
        |wasn't|weren't|hasn't|haven't"""
    ),
    standing=_words(
        """must|mustn't|never|always|don't|do not|dont|avoid|without|only|should|shouldn't
        |at most|at least|no more than|no less than|maximum|minimum|unless|make sure|ensure
        |prefer|from now on|whenever|every time|by default|remember|hands off|off limits
        |forbidden|not allowed|may not|refrain|under no circumstances|stick to|stick with
        |rather than|can't use|cannot use|must not|don't ever|shall not|i'd rather you
        |you are not to|nobody may|nothing may|no one may|not to be|not exceed|i never want
        |we never want|i don't want|i do not want|i dont want|we don't want|we do not want
        |don't want you|i don't want to see|i don't want to have|i don't want to be
        |i do not want to be|don't want to have|i want you to use|i want you to always
        |i want you to keep|i want you to ask|i want you to stop|i want you to avoid|i want all
        |i want every|^stop …ing|^quit …ing|^no more|^no … please|^no …, please|^please no
        |^no new|^no … in|^no … without|^no … for|^no … on|^no … to|^no … from|^no … anywhere
        |^no … at all|^no … ever|ask me before|ask me first|ask before|ask for my
        |check with me before|check with me first|ask us before|tell me before|let me know before
        |my approval before|my okay before|wait for my|run it by me|check in with me
        |approval first|confirm with me|^leave … alone|^leave … as it is|^leave … as they are
        |^leave … as is|^leave … untouched|^leave … unchanged|^keep … as it is|^keep … as is
        |^keep … unchanged|^keep … out of|^keep … free of|^keep … under|^keep … below
        |^keep … within|have to keep|to keep … under|to keep … below|to keep … within
        |^keep … at or|stay away from|stay out of|stay below|stay under|steer clear of|read-only
        |^treat … as|^limit … to|^cap … at|no longer than|no larger than|no bigger than
        |no fewer than|not more than|max of|has to|have to|can't exceed|cannot exceed
        |don't you dare|^before every|^before each|^before you commit|^before you push
        |^before any|^before committing|every … starts with|^use … in all|^use … everywhere
        |^use … for all|^use … for every|^use … in every|need to be|needs to be|needs to stay
        |need to stay|need to have|needs to have|needs to remain|need to pass|needs to pass
        |needs to support|every … needs|each … needs|every … gets|each … gets|every … has to
        |from here on|from this point on|going forward|^in the future|henceforth|each time
        |at all times|limit is|limit of|limits are|limit for|be sure to|^use … instead of
        |^run … before you|^run … before each|^run … before every|^run … before any
        |^run … before handing|^run … before committing|^run … before pushing|^run … before a
        |^run … after each|^run … after every|^run … after any|^test … before you
        |^check … before you|^format … before you|^lint … before you|^commit … after each
        |^commit … after every"""
    ),
    remarks=_words(
        """i don't|i do not|i dont|we don't|we do not|we dont|they don't|they do not|you don't
        |you do not|you dont|which don't|that don't|it only|it never|it always|is only|are only
        |is always|are always|is never|are never|i never|i should|should i|should we|not only
        |don't worry|don't know|don't you|never mind|don't think|i only|should have been
        |you should have|i should have|we should have|must have been|must be because|should work
        |should be fine|should be ok|should be good|should now|don't have|do not have|don't see
        |do not see|don't need|do not need|don't understand|don't get|if you don't|if i don't
        |if we don't|but don't|so i don't|why don't|tests don't|without success|without problems
        |i don't want to|i do not want to|i dont want to|we don't want to|we do not want to
        |don't want to|no point|no problem|no worries|no biggie|no idea|no luck|no rush|no thanks
        |no need|no part|no one in|no difference|no changes in|no change in|no reason|no wonder
        |that need to be|that needs to be|what needs to be|which need to be|which needs to be
        |they need to be|you need to be|we need to be|i need to be|just need to be
        |this needs to be|it needs to be|it needs to have|^need to be|stopped working
        |needs to be fixed|need to be fixed|needs to be done|need to be done|needs to be added
        |need to be added|needs to be updated|need to be updated|needs to be changed
        |need to be changed|needs to be implemented|need to be implemented|needs to be removed
        |need to be removed|needs to be rewritten|need to be rewritten|needs to be able
        |need to be able|this has to be|it has to|there has to be|there have to be|i have to
        |we have to|you have to|that has to|this has to|they have to|he has to|she has to
        |don't have to|doesn't have to|do not have to|does not have to|will have to|would have to
        |may have to|might have to|has to do with|without an error|without errors|without error
        |still have to|you don't have to|we don't have to|i don't have to|you do not have to
        |i'll have to|we'll have to|you'll have to|don't exist|don't seem|don't remember
        |they always|they never|i always|as always|has always|have always|was always|were always
        |has never|have never|had never|was never|were never|i've never|almost always
        |almost never|at least it|at least now|at least that|at least i|every time i
        |every time it|every time we|whenever i|whenever it|must be a bug|you should be able
        |only happens|only works|only seems|only problem|only issue|only question|only reason
        |only difference|i remember|can't remember"""
    ),
    permissions=_words(
        """may|can|could|fine|ok|okay|allowed|permitted|free to|acceptable|welcome|possible
        |optional"""
    ),
    lifts=_words(
        """no longer forbidden|no longer prohibited|no longer|not needed|not required
        |not necessary|no need|need not|needn't|don't need|does not need|doesn't need
        |doesn't have to|don't have to|not forbidden|not prohibited|not off limits|no limit
        |not limited|unlimited|optional|not mandatory|not a problem|no problem|no objection
        |nothing against|lifted|dropped|not bother|doesn't matter|does not matter|not only"""
    ),
    conditions=_words("without|unless|except|until"),
    reports=_words(
        """did not|didn't|was not|wasn't|were not|weren't|has not|hasn't|have not|haven't|had not
        |never called|not yet|not found|no such|isn't|is not yet|could not|couldn't"""
    ),
    approvals=_words(
        """approval|permission|consent|ask|asks|asked|asking|confirm|confirmation|okay|approve
        |approves|agree|agrees|agreement|sign-off|checking with|check with|checks with"""
    ),
    bounds=_words(
        """at most|no more than|up to|maximum|max|limit|limited to|under|below|within|or less
        |or fewer|at the most|less than|fewer than"""
    ),
    excesses=_words(
        """more than|longer than|larger than|bigger than|greater than|higher than|wider than|over
        |above|exceed|exceeds|beyond|more|longer|larger|bigger"""
    ),
    revisions=_words(
        """now|actually|instead|rather|please|then|make it|make that|change|changed|update|updated
        |new|sorry|correction|ok|so|set|use|the|a|an|is|are|to|of|for|be|we|it|that|and|in|should
        |from now on|let's|at|on|i|you|he|she|they|me|my|your|our|their|its|this|these|those
        |there|here|what|which|who|when|where|why|how|if|than|with|from|into|about|some|any|all
        |more|most|other|such|very|much|many|well|even|still|yet|else|anything|something
        |everything|thing|things|stuff|just|really|also|too|like|get|got|do|does|did|done|was
        |were|been|being|have|has|had|by|or|but|as|would|could|can|may|might|will|alone|used|using
        |uses|both|only|from here on|ever|us|him|her|them|end|up|until
        |touch|touched|touching|modify|modified|modifies|modifying|edit|edits|edited|editing|alter
        |altered|changes|changing|time|times|make|per"""
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
        |下限|默认|记得|记住|千万|避免|严禁|一律|统一|以后|宁可|不准|一定要|请勿|切记|不允许|禁用
        |每次|应当|今后|凡是|限制为|不应|别再|不可以|不想要|不希望|先问我|都要|都得|只用
        |仅使用|只允许|只许|不多于|不大于|不高于|不低于|以内|之内"""
    ),
    remarks=_words(
        """能不能|要不要|别的|区别|分别|特别|级别|类别|别人|个别|差别|识别|辨别|性别|不得不|不要紧
        |为什么不能|还是不能|我不能|现在不能|以后再|默认值|每次都会|不再是"""
    ),
    permissions=_words("可以|允许|准许|能够|可|无妨"),
    lifts=_words("不再禁止|不再|无需|不必|不用|取消|解除|没有限制|不受限"),
    conditions=_words("除非|除了|没有"),
    reports=_words("还没|没有|尚未|未能|不存在"),
    approvals=_words("同意|批准|确认|询问|征得|许可|先问"),
    bounds=_words("最多|上限|以内|不超过|至多|限制|之内"),
    excesses=_words("超过|大于|多于|高于|超出"),
    revisions=_words(
        """现在|今后|以后|起|新|已经|目前|吧|改成|改为|改用|换成|改到|调整为|调到|还是|其实|不对
        |更正|修改|改动|更改|请|把|的|了|为|到|是|在|用|就|设"""
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
        """muss|müssen|darf|dürfen|nie|niemals|immer|kein|keine|keinen|nur|ohne|höchstens
        |mindestens|maximal|vermeide|verboten|sollte|sollen|auf keinen fall|ab jetzt|lieber
        |bitte … nicht|bitte … nichts|bitte … kein|bitte … keine|bitte … keinen|bitte … nie|musst
        |müsst|darfst|dürft|stets|künftig|in zukunft|ab sofort|von nun an|frag mich|frage mich
        |fragen sie mich|hör auf|verzichte auf|finger weg|unter keinen umständen|^ändere … nicht
        |^ändere … nichts|^lösche … nicht|^lösche … nichts|nicht anfassen|nicht ändern
        |nicht verändern|nicht löschen|nicht verwenden|nicht benutzen|nicht pushen
        |nicht committen|soll nicht|soll immer|limit ist|limit liegt|limit beträgt|lass … in ruhe
        |lass die finger|nicht mehr als|nicht länger als|ich möchte … immer|ich möchte … kein
        |ich möchte … keine"""
    ),
    remarks=_words(
        """ich muss|muss ich|wir müssen|müssen wir|ich habe keine|habe keine|gibt es keine
        |gibt keine|keine ahnung|kein problem|ich darf|darf ich|sollte ich|sollten wir|ist nur
        |ich will wissen|hat keine|hat kein|immer noch|funktioniert nur"""
    ),
    permissions=_words("darf|dürfen|kann|können|erlaubt|in ordnung|möglich"),
    lifts=_words(
        """nicht mehr verboten|nicht mehr nötig|nicht nötig|nicht mehr|muss nicht|müssen nicht
        |nicht verboten|kein limit|keine grenze|brauchen nicht|braucht nicht"""
    ),
    conditions=_words("ohne|außer"),
    reports=_words("noch nicht|wurde nicht|wurden nicht|habe nicht|hat nicht|nicht gefunden"),
    approvals=_words("zustimmung|erlaubnis|frag|frage|fragen|rückfrage|genehmigung|freigabe"),
    bounds=_words("höchstens|maximal|bis zu|unter|limit|maximum|obergrenze"),
    excesses=_words("mehr als|länger als|größer als|über|überschreiten|überschreitet|mehr|länger"),
    revisions=_words(
        """bitte|der|die|das|den|dem|des|ein|eine|einen|einem|einer|an|auf|in|im|am|zu|zum|zur|von
        |vom|mit|für|und|oder|ist|sind|werden|wird|wurde|du|wir|ich|es|sie|alle|aller|auch|noch
        |dass|diese|dieser|dieses|mich|mir|uns|zwischen|bei|bevor|musst|müsst|darfst|jetzt
        |ändere|ändern|ändert|geändert|verändert|verändern|anfassen"""
    ),
    wishes=_words("lieber|bevorzuge|ziel|zuständig|entschieden|wichtig|wir nehmen"),
    news=_words("entschieden|weil|ursache|gefunden|fehlgeschlagen|noch nicht|offen|läuft|ergebnis"),
    negations=_words(
        """nicht|nichts|nie|niemals|kein|keine|keinen|keiner|keinem|keines|ohne|außer|verboten
        |auf keinen fall|unter keinen umständen|statt|anstatt|unverändert|finger weg|hör auf
        |vermeide|verzichte"""
    ),
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
        |éviter|interdit|il faut|désormais|plutôt|^ne … pas|^n'… pas|je ne veux pas|à partir de
        |demande-moi avant|demandez-moi avant|arrête de|arrêtez de"""
    ),
    permissions=_words("peut|peuvent|autorisé|permis"),
    lifts=_words("n'est plus|plus nécessaire|pas nécessaire|pas besoin"),
    conditions=_words("sans|sauf"),
    approvals=_words("accord|permission|demander|autorisation"),
    bounds=_words("au plus|au maximum|limite|moins de|jusqu'à"),
    excesses=_words("plus de|dépasser|dépasse|supérieur"),
    revisions=_words(
        """le|la|les|un|une|des|de|du|à|au|aux|et|ou|est|sont|dans|pour|par|sur|il|elle|on|nous
        |vous|tu|que|qui|ce|cette|ces|veuillez"""
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
        folded = _folded(text)
        return bool(
            self.words.search(folded) or (not folded.isascii() and self.parts.search(folded))
        )

    def found_outside(self, others: Presence, text: str) -> bool:
        """Whether the text has any of them that is not in one of the others."""
        spans = [*others.spans_in(text)]
        return any(
            not any(start <= at and end <= last for start, last in spans)
            for at, end in self.spans_in(text)
        )

    def spans_in(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where they are in the folded text."""
        folded = _folded(text)
        for found in self.words.finditer(folded):
            yield found.span()
        if not folded.isascii():
            for found in self.parts.finditer(folded):
                yield found.span()

    def count_in(self, text: str) -> int:
        """Return how many different cues the text has."""
        folded = _folded(text)
        found = set(self.words.findall(folded))
        return len(found if folded.isascii() else found | set(self.parts.findall(folded)))

    def removed_from(self, text: str) -> str:
        """Return the folded text without any of them."""
        folded = self.words.sub(" ", _folded(text))
        return folded if folded.isascii() else self.parts.sub(" ", folded)


class Cues(dict[str, Presence]):
    """The tables of some languages as one, by the names of the fields of `Language`."""

    def __getattr__(self, name: str) -> Presence:
        """Return the cues of one meaning."""
        return self[name]


def _folded(text: str) -> str:
    return text.casefold().replace("\u2019", "'")


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
    words = "|".join(map(_pattern, (cue for cue in ordered if not _CJK.match(cue))))
    parts = "|".join(map(re.escape, filter(_CJK.match, ordered)))
    return Presence(
        re.compile(rf"(?<![\w'-])(?:{words})(?![\w-])" if words else "(?!)"),
        re.compile(parts or "(?!)"),
    )


_CJK = re.compile(r"[\u3400-\u9fff]")
_BEGINNING = r"(?:^|(?<=[.!?:;,] )|(?<=please )|(?<=and )|(?<=bitte ))"


def _pattern(cue: str) -> str:
    first, _, second = cue.removeprefix("^").partition("…")
    begins = _BEGINNING if cue.startswith("^") else ""
    goes_on = ""
    if second.startswith((" ", ",")):
        goes_on = rf"(?=[^.!?;,()]{{0,80}}?{re.escape(second)}(?![\w-]))"
    elif second:
        goes_on = rf"(?= [\w-]+{re.escape(second)}(?![\w-]))"
    return f"{begins}{re.escape(first.strip())}{goes_on}"
