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
    with `^` begins a clause. `ask/tell me` is two cues, and `_` is a space in such a word. `leave …
    alone` is `leave` in a clause with `alone` behind it; `stop …ing` has one word behind it, and
    `…s should` is the end of a word. `why …` is a clause from `why` on, and `… yet` up to `yet`.
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
    """Phrases that end with such a word, and report, ask, or speak of this moment alone."""
    permissions: tuple[str, ...] = ()
    """Words that allow something where no negation is beside them."""
    lifts: tuple[str, ...] = ()
    """Phrases that end an order or a limit, such as `no longer`."""
    reports: tuple[str, ...] = ()
    """Negations that tell what happened, such as `did not`."""
    approvals: tuple[str, ...] = ()
    """Words by which the user is to be asked."""
    conditions: tuple[str, ...] = ()
    """Words by which an order holds only in some cases, such as `unless`."""
    bounds: tuple[str, ...] = ()
    """Words of an upper limit, such as `at most`."""
    revisions: tuple[str, ...] = ()
    """Words beside a changed value: an order and a text are compared without them."""
    failures: tuple[str, ...] = ()
    """How a failed result begins."""
    pointers: tuple[str, ...] = ()
    """First words of a sentence that says little without the one before it, such as `that`."""
    conclusions: tuple[str, ...] = ()
    """How titles and leads over conclusions begin, such as `what changed`."""
    troubles: tuple[str, ...] = ()
    """How titles and leads over what is wrong or not done begin, such as `known issues`."""
    abbreviations: tuple[str, ...] = ()
    """Words whose full stop does not end a sentence."""


def _language(name: str, text: str) -> Language:
    """Return a language from lines `field = cue|cue`, which may go on in indented lines."""
    lines = re.findall(r"^(\w+) = (.*(?:\n +\|.*)*)", text, re.MULTILINE)
    return Language(name, **{field: tuple(re.split(r"\n? *\|", cues)) for field, cues in lines})


ENGLISH = _language(
    "English",
    """
orders = must|mustn't|never|always|don't|do not|dont|cannot|can't|not|no|only|avoid|without|unless
    |except|should|shouldn't|need|needs|ensure|make sure|require|required|requires|have to|has to
    |stick|prefer|want|rather|please|keep|leave|forbidden|allowed|off limits|at most|at least
    |no more than|limit|maximum|minimum|max|under|within|before|until|deadline|by default|remember
    |forget|careful|important|nothing|nobody|every|refrain|stop|hands off|may not|forbid|forbids
errands = please|can you|could you|before|until|want|need|let's|now|start|show|check|look|have to
    |leave|within|not|no|under
wishes = prefer|preference|i like|i'd like|i hate|i love|rather|style|tone|format|formatting|wording
    |from now on|whenever|in general|instead of|always|never|no tables|bullets|short|concise|i want
    |ideally|avoid|contact|talk to|ask|in charge|responsible|owner|owns|boss|manager|supervisor|lead
    |head of|colleague|approves|sign off|signs off|handles|client|customer|reviewer|goal|aim|target
    |objective|purpose|success|the point is|what matters|we want|in the end|should end up|decided
    |decision|agreed|settled|going with|we go with|will use|we use|picked|final|because|confirmed
    |reason
negations = not|never|no|nor|without|avoid|forbidden|stop|quit|refrain|except|unless|prohibited
    |forbid|forbids|banned|disallowed|ruled out|taboo|cannot|can't|don't|do not|dont|doesn't|mustn't
    |shouldn't|won't|isn't|aren't|hands off|off limits|exclude|out of scope|nothing|none|nobody
    |free of|under no circumstances|instead of|rather than|unchanged|untouched|stays as it is
    |stay as they are|stay away from|stay/keep out of|leave … alone|leave/keep … as/unchanged|didn't
    |wasn't|weren't|hasn't|haven't
news = decided|chose|settled|going with|because|reason|found|confirmed|result|failed|didn't|not yet
    |still|open|pending|waiting|until
standing = ^never|^always|^avoid|^only|^be sure to|^prefer|^refrain|please no|^no new/more
    |^no …, please|^no … please/in/for/on/to/from/anywhere/at_all/ever
    |^make_sure/ensure … all/always/any/before
    |^make_sure/ensure … doesn't/don't/each/every/never/no/not/only|^don't/do_not/dont
    |and/but/so/also don't/do_not/dont|don't you dare|^remember:|^remember to/that|^stop …ing
    |^quit …ing|^stay/keep away/out/off/below/under/within|^stick to/with|^steer clear|^limit … to
    |^cap … at|^treat … as|^leave … alone/untouched/unchanged/as
    |^keep … as/unchanged/out_of/free_of/under/below/within/at_or
    |^use … instead_of/rather_than/everywhere/in_all/for_all/in_every/for_every
    |^run/test/check/format/lint/commit/push … before/after each/every/any/committing/pushing
    |^run/test/check/format/lint/commit … before you/a|^before/after each/every/any
    |^before you commit/push|^whenever|^every/each time|must|…s should
    |every/each/all/any/no/nobody/nothing … should|should never/always/not/only|shouldn't|shall
    |mustn't|may only/not|has/have to|need/needs to_be/to_have/to_stay/to_remain/to_pass|not exceed
    |every/each … needs/gets|nobody/nothing/no_one may|not to be|are not to
    |is/are forbidden/off_limits/read-only/not_allowed|not allowed to|hands off
    |under no circumstances|from now/here/this_point on|going forward|^in the future|henceforth
    |at all times|at most|at least|no more/less/longer/larger/bigger/fewer than
    |not more/longer/larger than|^maximum/max/minimum|maximum/minimum/max of|limit/limits is/are/for
    |i'd rather you|i/we never/only want|i/we don't/do_not/dont want
    |i/we don't/do_not/dont want to_see/to_have/to_be|i want all/every
    |i want you to_use/to_always/to_keep/to_ask/to_stop/to_avoid
    |ask/tell/check_with/confirm_with/show me/us before/first|let me/us know before
    |without my/permission/approval/asking_me/asking_first/checking_with|wait for my
    |my approval/okay/permission|approval first|run it by me|check in with me|confirm with me
    |unless explicitly/asked/told|unless i ask/say/tell/approve/explicitly
remarks = let's/lets/let_us/maybe/perhaps/probably/why/how/what/where/whether/that's …
    |i think/guess/wonder …|… yet/for_now/right_now/this_time
    |should/must/shall i/we/you/it/this/that
    |i/we/you/it/he/she/they/this/that/there/which/who/what should/shouldn't/has_to/have_to
    |i/we/you/it/they/this/that/which need/needs to/to_be/to_have|i/he/she/they/who/which must
    |should/must have_been|it/this/that must be|must be because
    |should now/work/pass/be_fine/be_ok/be_good
    |will/would/may/might/don't/doesn't/not/still/just/only/to have/need to|has/have to do_with
    |to/must/should be able/added/changed/closed/done/fixed/implemented/made/removed/updated
    |don't/do_not/dont bother/worry/know/think/see/forget/you/get/exist/seem/remember/have
    |i/we don't/do_not/dont want_to|only the/a/an/one/this/that/problem/issue/question/reason
    |only difference/happens/works/seems|never mind|always/never fails/works/happens/returns
    |no just/that/that's/it/it's/i/you/we/they/the/this/idea/problem/need/worries/luck/rush|no,
    |no thanks/reason/wonder/point/part/difference/change/changes/error/errors/output/one
    |at least it/now/that/i/we/one|every/each time i/it/we|whenever i/it/we
permissions = may|can|could|fine|ok|okay|allowed|permitted|free to|acceptable|welcome|possible
    |optional
lifts = no longer|no longer forbidden/prohibited|no need/limit/problem/objection|need not|needn't
    |not forbidden/prohibited/off_limits/limited/mandatory/needed/required/necessary/a_problem
    |not only/bother|don't/doesn't/does_not need|don't/doesn't have to|doesn't/does_not matter
    |unlimited|optional|nothing against|lifted|dropped
reports = did not|didn't|was not|wasn't|were not|weren't|has not|hasn't|have not|haven't|had not
    |never called|not yet|not found|no such|isn't|is not yet|could not|couldn't|if …
approvals = approval|permission|consent|ask|asks|asked|asking|confirm|confirmation|okay|approve
    |approves|agree|agrees|agreement|sign-off|explicit|my/user's/must ok|go-ahead
    |checking/check/checks with
conditions = without|unless|until|before|except|if
bounds = at most|no more than|up to|maximum|max|limit|limited to|under|below|within|or less|or fewer
    |at the most|less than|fewer than
revisions = now|actually|instead|rather|please|then|make it|make that|change|changed|update|updated
    |new|sorry|correction|ok|so|set|use|the|a|an|is|are|to|of|for|be|we|it|that|and|in|should
    |from now on|let's|at|on|i|you|he|she|they|me|my|your|our|their|its|this|these|those|there|here
    |what|which|who|when|where|why|how|if|than|with|from|into|about|some|any|all|more|most|other
    |such|very|much|many|well|even|still|yet|else|anything|something|everything|thing|things|stuff
    |just|really|also|too|like|get|got|do|does|did|done|was|were|been|being|have|has|had|by|or|but
    |as|would|could|can|may|might|will|alone|used|using|uses|both|only|from here on|ever|us|him|her
    |them|end|up|until|user|user's|agent|wants|first|wait|touch|touched|touching|modify|modified
    |modifies|modifying|edit|edits|edited|editing|alter|altered|changes|changing|time|times|make|per
failures = error|traceback|exception|failed|failure|fatal|not found|denied|no such|cannot|panic
    |unable|refused|timed out|timeout|invalid
pointers = that|this|these|those|it|they|such|both|neither|the rest/others/other/latter/former/same
    |everything/all/anything else|otherwise|besides|apart/aside from that/this/these|other than that
conclusions = tl;dr|summary|what changed|changes|fix|next|conclusion|result/results|verdict|gaps
troubles = issues|problems|minor/known/open/remaining/outstanding/other issues/problems/failures
    |failing|failures|failed|still failing/open/broken|not done/tested/verified/fixed|limitations
    |known limitations|caveats|blockers|risks|todo|what is/remains open/left/missing
abbreviations = mr|mrs|ms|dr|prof|st|jr|sr|e.g|i.e|etc|vs|cf|approx|dept|fig|figs|vol|resp|esp|incl
    |excl|misc|al|pp|no|ch|sec
    """,
)

CHINESE = _language(
    "Chinese",
    """
orders = 必须|一定|务必|不要|别|不能|不可|不得|禁止|不许|切勿|勿|只能|只|仅|除非|除了|应该|应当|需要
    |要|请|确保|保证|最多|至少|不超过|不少于|上限|下限|以内|之前|截止|默认|希望|偏好|喜欢|更想|宁可
    |记得|记住|保留|保持|千万|注意|避免|统一|先|不准|无需|不用|严禁|所有|每|都|想|得|限制
errands = 帮我|请|先|想|要|看看|需要|得|之前|都|麻烦
wishes = 喜欢|偏好|最好|尽量|一律|统一|以后|习惯|讨厌|不爱|风格|格式|语气|希望|宁可|更想|倾向|别写
    |不要用|别用|找|联系|负责|对接|老板|经理|主管|领导|同事|老师|问|管|点头|签字|审批|法务|财务|客户
    |接口人|叫|目标|目的|为了|指标|最终|要达到|成功|验收标准|决定|选择|选用|采用|确定|因为|确认|定为
    |定了|拍板|敲定|选定
negations = 不|别|勿|禁|无|非|没有|严禁|除了|除非|避免
news = 决定|定|改为|因为|原因|发现|确认|结果|失败|还没|未|正在|等
standing = 必须|务必|不要|不得|不可|禁止|不许|切勿|请勿|不准|不允许|^别|千万|请别|别再|只能|只用
    |仅使用|只允许|只许|除非|最多|至少|不超过|不能超过|不多于|不少于|不大于|不高于|不低于|以内|之内
    |上限是|限制为|记得|记住|切记|避免|严禁|禁用|一律|统一|以后|今后|凡是|宁可|一定要|应当|不应
    |不想要|不希望|绝不能|绝对不能|都不能|不能用|不能改|不能动|不能有|先问我|都要|都得|每次提交
    |每次修改|每次改动|^默认
remarks = 为什么…|要不要|不得不|不要紧|不可能|以后再|每次都会|每次都要|先不要|暂时|现在…|今天…|帮我…
    |默认情况|默认值|只能看
permissions = 可以|允许|准许|能够|可|无妨
lifts = 不再禁止|不再|无需|不必|不用|取消|解除|没有限制|不受限
reports = 还没|没有|尚未|未能|不存在
approvals = 同意|批准|确认|询问|征得|许可|先问
conditions = 除非|未经|之前
bounds = 最多|上限|以内|不超过|至多|限制|之内
revisions = 现在|今后|以后|起|新|已经|目前|吧|改成|改为|改用|换成|改到|调整为|调到|还是|其实|不对
    |更正|修改|改动|更改|请|把|的|了|为|到|是|在|用|就|设
failures = 错误|失败|异常|找不到|无法|拒绝|超时|不存在|无效
pointers = 这|那|它|此|其余|其他|其它|剩下|上述|以上|两者|除此|否则|同样
conclusions = 总结|结论|小结|改动|变更|修复|下一步|结果|建议
troubles = 问题|已知问题|遗留问题|剩余问题|未完成|未解决|未验证|失败|局限|限制|风险|待办
    """,
)

GERMAN = _language(
    "German",
    """
orders = muss|müssen|darf|dürfen|nie|niemals|immer|nicht|kein|keine|keinen|nur|ohne|höchstens
    |mindestens|maximal|bitte|soll|sollen|sollte|vermeide|spätestens|bis|verboten|erlaubt
wishes = lieber|bevorzuge|ziel|zuständig|entschieden|wichtig|wir nehmen
negations = nicht|nichts|nie|niemals|kein|keine|keinen|keiner|keinem|keines|ohne|außer|verboten
    |untersagt|tabu|auf keinen fall|unter keinen umständen|statt|anstatt|unverändert|finger weg
    |hör auf|vermeide|verzichte
news = entschieden|weil|ursache|gefunden|fehlgeschlagen|noch nicht|offen|läuft|ergebnis
standing = ^nie/niemals/immer/nur/kein/keine/keinen
    |darf/dürfen/soll/sollen/sollte nicht/nie/nur/kein/keine|muss|müssen|musst|müsst|darf|dürfen
    |darfst|dürft|soll|sollen|sollte|höchstens|mindestens|maximal|vermeide|verboten|stets|künftig
    |in zukunft|auf keinen fall|unter keinen umständen|ab jetzt/sofort|von nun an
    |bitte … nicht/nichts/kein/keine/keinen/nie/immer|^lieber|frag mich|frage mich|fragen sie mich
    |hör auf|verzichte auf|finger weg|^ändere/lösche … nicht/nichts
    |nicht anfassen/ändern/verändern/löschen/verwenden/benutzen/pushen/committen
    |limit ist/liegt/beträgt|lass … in_ruhe|lass die finger|nicht mehr/länger als
    |ich möchte … immer/kein/keine|ohne zu_fragen/rückfrage/meine
remarks = ich/wir/man/es/das muss/müssen/darf/sollte/sollten
    |muss/müssen/darf/sollte/sollten ich/wir/man/es|kein problem|keine ahnung|noch nicht/nichts …
    |immer noch|… noch_nicht/noch_nichts
permissions = darf|dürfen|kann|können|erlaubt|in ordnung|möglich
lifts = nicht mehr|nicht mehr verboten/nötig|nicht nötig/verboten|kein limit|keine grenze
    |muss/müssen/braucht/brauchen nicht
reports = noch nicht|wurde nicht|wurden nicht|habe nicht|hat nicht|nicht gefunden
approvals = zustimmung|erlaubnis|frag|frage|fragen|rückfrage|genehmigung|freigabe
conditions = ohne|es sei denn|außer|bevor|falls|wenn
bounds = höchstens|maximal|bis zu|unter|limit|maximum|obergrenze
revisions = bitte|der|die|das|den|dem|des|ein|eine|einen|einem|einer|an|auf|in|im|am|zu|zum|zur|von
    |vom|mit|für|und|oder|ist|sind|werden|wird|wurde|du|wir|ich|es|sie|alle|aller|auch|noch|dass
    |diese|dieser|dieses|mich|mir|uns|zwischen|bei|bevor|musst|müsst|darfst|jetzt|ändere|ändern
    |ändert|geändert|verändert|verändern|anfassen
failures = fehler|nicht gefunden|fehlgeschlagen
pointers = dies|diese|dieser|dieses|es|beide|der rest|alles andere|ansonsten
    |sonst|außerdem|davon abgesehen|dasselbe|das gleiche
conclusions = zusammenfassung|fazit|änderungen|geändert|lösung|nächste schritte|ergebnis
troubles = probleme|bekannte/offene probleme/fehler|noch offen|offen|nicht erledigt/getestet
    |fehlgeschlagen|einschränkungen|risiken
abbreviations = hr|fr|nr|str|z.b|d.h|u.a|bzw|ggf|inkl|evtl|vgl|usw|ca|abs|tel
    """,
)

FRENCH = _language(
    "French",
    """
orders = doit|dois|doivent|jamais|toujours|ne pas|pas de|n'|aucun|aucune|seulement|uniquement|sans
    |au plus|au moins|maximum|minimum|veuillez|s'il te plaît|s'il vous plaît|évite|éviter|interdit
    |avant le|il faut
wishes = préfère|objectif|responsable|décidé|important|plutôt
negations = ne|pas|jamais|aucun|aucune|sans|sauf|interdit
news = décidé|parce que|cause|trouvé|échoué|pas encore|en cours|résultat
standing = doit|doivent|^jamais/toujours/uniquement/ne/évite/évitez/plutôt|ne … jamais|ne pas|éviter
    |réponds uniquement|aucun/aucune … ne|au plus|au moins|interdit|il ne faut pas/jamais|il faut
    |désormais|à partir de|je ne veux pas|demande-moi/demandez-moi avant|arrête/arrêtez de
    |sans demander/mon_accord/ma_permission
remarks = on/elle/ça/je doit/dois|… pas_encore/pour_l'instant
permissions = peut|peuvent|autorisé|permis
lifts = n'est plus|plus nécessaire|pas nécessaire|pas besoin
approvals = accord|permission|demander|autorisation
conditions = sans|sauf|à moins|avant
bounds = au plus|au maximum|limite|moins de|jusqu'à
revisions = le|la|les|un|une|des|de|du|à|au|aux|et|ou|est|sont|dans|pour|par|sur|il|elle|on|nous
    |vous|tu|que|qui|ce|cette|ces|veuillez
failures = erreur|introuvable|échec
pointers = cela|ça|ceci|c'est|celui-ci|celle-ci|les autres|le reste
    |tout le reste|sinon|à part cela|en outre|de même
conclusions = résumé|conclusion|changements|modifications|correction|prochaines étapes|résultat
troubles = problèmes|problèmes connus/restants|échecs|limites|risques|reste à faire|non testé
abbreviations = m|mme|mlle|etc|p.ex|env
    """,
)

SHIPPED = (ENGLISH, CHINESE, GERMAN, FRENCH)


class Presence(NamedTuple):
    """Cues of one meaning, in all languages: those of ASCII letters are whole words."""

    words: re.Pattern[str]
    parts: re.Pattern[str]

    def each_in(self, text: str) -> Iterator[re.Match[str]]:
        """Yield where they are in the folded text."""
        folded = _folded(text)
        yield from self.words.finditer(folded)
        if not folded.isascii():
            yield from self.parts.finditer(folded)

    def found_in(self, text: str) -> bool:
        """Whether the text has any of them."""
        return next(self.each_in(text), None) is not None

    def begins(self, text: str) -> bool:
        """Whether the text begins with any of them."""
        folded = _folded(text)
        return bool(self.words.match(folded) or self.parts.match(folded))

    def found_outside(self, others: Presence, text: str) -> bool:
        """Whether the text has any of them that does not end in one of the others."""
        spans = [one.span() for one in others.each_in(text)]
        ends = (one.end() for one in self.each_in(text))
        return any(not any(start < end <= last for start, last in spans) for end in ends)

    def count_in(self, text: str) -> int:
        """Return how many different cues the text has."""
        return len({one[0] for one in self.each_in(text)})

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
    words = "|".join(_pattern(cue) for cue in ordered if not _CJK.search(cue))
    parts = "|".join(_pattern(cue) for cue in ordered if _CJK.search(cue))
    return Presence(
        re.compile(rf"{_WORD_START}(?:{words}){_WORD_END}" if words else "(?!)"),
        re.compile(parts or "(?!)"),
    )


_CJK = re.compile(r"[\u3400-\u9fff]")
_BEGINNING = r"(?:^|(?<=[.!?:;,、，。：；(-] )|(?<=[，。：；！？])|(?<=please )|(?<=bitte ))"
_CLAUSE = r"(?:[^.!?:;,()，。：；！？]|\.(?=\w)){0,200}"  # the dot of a file name ends none
_WORD_START, _WORD_END = r"(?<![\w'-])", r"(?![\w-])"


def _pattern(cue: str) -> str:
    first, goes_on, second = cue.removeprefix("^").partition("…")
    begins = _BEGINNING if cue.startswith("^") else ""
    lead, then = _words_of(first), _words_of(second)
    if not goes_on:
        return begins + lead
    if not second:
        return lead + _CLAUSE
    if not first:
        return rf"{_CLAUSE}{_WORD_START}{then}" if second[0] == " " else rf"[\w-]+{then}"
    between = {" ": _CLAUSE + _WORD_START, ",": _CLAUSE}.get(second[0], r" [\w-]+")
    return rf"{begins}{lead}(?={between}{then}{_WORD_END})"


def _words_of(phrase: str) -> str:
    """Return the expression of a phrase."""
    words = (
        "|".join(re.escape(one.replace("_", " ")) for one in sorted(word.split("/"), key=len)[::-1])
        for word in phrase.split()
    )
    return " ".join(f"(?:{word})" for word in words)
