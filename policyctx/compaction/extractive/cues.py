"""What tells the parts of a conversation apart by their words, as one table for each language.

The tables only rank. What a user says in a language without one is kept all the same, since who
said it, and which exact values are in it, weigh more than any word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

from policyctx.compaction.extractive.meanings import CHINESE_MEANINGS, ENGLISH_MEANINGS


@dataclass(frozen=True, slots=True)
class Language:
    """The cues of one language, each a word or phrase in lower case.

    Where letters are ASCII a cue is found as a whole word, elsewhere anywhere in the text.
    """

    name: str
    orders: tuple[str, ...] = ()
    """Obligations, prohibitions, preferences and limits."""
    choices: tuple[str, ...] = ()
    """What a decision or a finding is told with."""
    revisions: tuple[str, ...] = ()
    """What a statement has that takes an earlier one back."""
    settings: tuple[str, ...] = ()
    """Words that come before the value that something is given, such as `is` and `use`."""
    particles: tuple[str, ...] = ()
    """Other words that say nothing of what a sentence is about."""
    corrections: tuple[str, ...] = ()
    """What the writer says of an own mistake."""
    updates: tuple[str, ...] = ()
    """Words that a changed value often comes with, and other sentences too, such as `now`."""
    targets: tuple[str, ...] = ()
    """Words between a verb of change and the new value, such as `to`."""
    places: tuple[str, ...] = ()
    """Other prepositions: what follows says which one of several is meant."""
    makers: tuple[str, ...] = ()
    """Verbs whose last word is the value: "make the title dark"."""
    articles: tuple[str, ...] = ()
    """Words that a noun follows."""
    conjunctions: tuple[str, ...] = ()
    """Words that join two orders."""
    surnames: tuple[str, ...] = ()
    """First characters of the names of people, where names have no capital letter."""
    actions: tuple[str, ...] = ()
    """Verbs that say little of what a sentence is about."""
    negations: tuple[str, ...] = ()
    """What makes an order a prohibition, or takes an obligation away."""
    denials: tuple[str, ...] = ()
    """Words before a value that no longer holds, such as `instead of`."""
    additions: tuple[str, ...] = ()
    """Words of a sentence that adds to what holds."""
    exceptions: tuple[str, ...] = ()
    """Words of a sentence that limits or suspends what holds, but does not end it."""
    questions: tuple[str, ...] = ()
    """How a question ends, or begins, that has no question mark."""
    requests: tuple[str, ...] = ()
    """Words of a question that asks to do something."""
    meanings: tuple[tuple[str, ...], ...] = ()
    """Words of one meaning; the first of each is its name, in English in every language."""
    asides: tuple[str, ...] = ()
    """Words beside the thing and its value, such as greetings and `size` in "size: 3 MB"."""
    plans: tuple[str, ...] = ()
    """What the next act is announced with."""
    failures: tuple[str, ...] = ()
    """How a failed result begins or ends."""
    finished: tuple[str, ...] = ()
    """The states of a task that needs no more work."""
    active: tuple[str, ...] = ()
    """The states of a task that is being worked on."""
    setbacks: tuple[str, ...] = ()
    """What tells that something that was tried did not work."""
    remedies: tuple[str, ...] = ()
    """What tells that a problem is solved."""
    unfinished: tuple[str, ...] = ()
    """What tells that something is not done yet, or still runs."""
    proposals: tuple[str, ...] = ()
    """What the agent offers to do something with."""
    agreements: tuple[str, ...] = ()
    """How the user accepts an offer without repeating it."""
    objections: tuple[str, ...] = ()
    """How a reply begins that turns down what was said before it; with the sign after it if any."""
    refusals: tuple[str, ...] = ()
    """How a reply begins that may turn down what was proposed, or only forbid something else."""
    continuations: tuple[str, ...] = ()
    """What a client writes to have a session go on, which is not a task."""
    task_lists: tuple[str, ...] = ()
    """What a list of tasks is called: that it is written is no step of the work."""
    wanted_failures: tuple[str, ...] = ()
    """What the agent says of a failure that it wants, such as a test before the code."""
    all_tasks: tuple[str, ...] = ()
    """What all of a list of tasks is called."""
    nothing_open: tuple[str, ...] = ()
    """How a line begins that says that nothing is left to do."""
    withdrawals: tuple[str, ...] = ()
    """What the user takes a task back with."""
    acknowledged: tuple[str, ...] = ()
    """Words that only say that something was heard."""
    errands: tuple[str, ...] = ()
    """Words of orders that hold for one act rather than for all later work, such as `please`."""
    wishes: tuple[str, ...] = ()
    """What a wish for all later work is told with: preferences, formats, habits."""
    roles: tuple[str, ...] = ()
    """What the part of a person is told with."""
    aims: tuple[str, ...] = ()
    """What an aim or a measure of success is told with."""
    states: tuple[str, ...] = ()
    """Labels and words that the state of the work is told with, such as `status`."""
    ordinals: tuple[str, ...] = ()
    """The words for first, second and so on, in order."""
    numbers: tuple[str, ...] = ()
    """The words for one, two and so on, in order."""
    firsts: tuple[str, ...] = ()
    """What comes before a number that counts from the beginning of a list."""
    lasts: tuple[str, ...] = ()
    """What points to the end of a list."""
    whole: tuple[str, ...] = ()
    """What points to all of a list."""
    users: tuple[str, ...] = ()
    """Names of a section that repeats what the user wrote."""
    goals: tuple[str, ...] = ()
    """Names of a section for what was asked and decided."""
    files: tuple[str, ...] = ()
    """Names of a section for files."""
    tools: tuple[str, ...] = ()
    """Names of a section for tool calls."""
    status: tuple[str, ...] = ()
    """Names of a section for what is being done and what is left."""
    errors: tuple[str, ...] = ()
    """Names of a section for what went wrong."""


ENGLISH = Language(
    name="English",
    orders=(
        "must", "mustn't", "never", "always", "don't", "do not", "dont", "cannot", "can't", "not",
        "no", "only", "avoid", "without", "unless", "except", "should", "shouldn't", "need",
        "needs", "ensure", "make sure", "require", "required", "requires", "have to", "has to",
        "stick", "prefer", "want", "rather", "please", "keep", "leave", "forbidden", "allowed",
        "off limits", "at most", "at least", "no more than", "limit", "maximum", "minimum", "max",
        "under", "within", "before", "until", "deadline", "by default", "remember", "forget",
        "careful", "important", "nothing", "nobody", "every", "refrain", "stop", "hands off",
    ),
    choices=(
        "decided", "decision", "chose", "choose", "chosen", "agreed", "settled", "going with",
        "will use", "we use", "opted", "because", "root cause", "turned out", "turns out", "found",
        "confirmed", "the problem", "the issue", "the fix", "fixed", "caused", "so that", "result",
        "decide", "final", "it is settled", "picked", "we go with", "conclusion", "reason",
        "the cause", "the culprit", "the bug is",
    ),
    revisions=(
        "instead", "actually", "rather than", "no longer", "change", "changed", "switch", "rather",
        "correction", "on second thought", "on reflection", "after all", "shift", "slip", "slipped",
        "scrap", "replace", "scratch that", "wrong", "not anymore", "anymore", "i meant", "update",
        "make it", "make that", "pushed", "postponed", "extended", "shortened",
        "revert", "moved", "bump", "bumped", "raise", "raised", "lower", "lowered", "forget",
        "turns out", "goes up", "goes down", "went up", "went down", "up from", "down from",
        "switched", "replaced", "replaces", "rename", "renamed", "change of plan", "changes",
        "new plan", "move", "roll back", "roll that back", "reschedule", "rescheduled", "swap",
        "takes over", "took over", "supersedes", "on hold", "dropped", "increase",
        "increased", "decrease", "decreased", "reduce", "reduced", "extend", "shorten", "push back",
        "become", "becomes", "upgrade", "downgrade", "the real", "lifted", "relaxed", "tightened",
        "go back to", "back to",
    ),
    corrections=(
        "i was wrong", "was wrong", "were wrong", "my mistake", "my bad", "mistaken", "misread",
        "i misread", "i misspoke", "correction", "scratch that", "sorry", "i meant", "i mixed up",
        "mixed up", "not true", "that was incorrect", "incorrect", "i overlooked", "on closer look",
        "strike that", "ignore what i said", "typo",
    ),
    updates=(
        "now", "from today", "as of", "starting", "new", "make", "has been", "these days",
        "from here on", "going forward", "from monday", "effective", "enough", "by now", "again",
        "from now on",
        "anyway", "fine after all", "today",
    ),
    targets=("to", "into", "as", "onto", "towards", "->", "→", "=>"),
    places=(
        "of", "for", "in", "on", "at", "from", "with", "during", "when", "if", "per", "by",
        "because", "since", "inside", "about", "after", "before", "until", "till", "under",
        "against", "between", "over", "without", "while", "unless", "than", "via", "through",
        "who", "which", "that",
    ),
    actions=(
        "set", "make", "put", "use", "keep", "go", "get", "run", "give", "take", "do", "have",
        "change", "update", "switch", "move", "shift", "pin", "raise", "lower", "bump", "call",
        "name", "rename", "want", "need", "like", "prefer", "write", "store", "save", "place",
        "live", "stay", "stand", "sit", "start", "begin", "finish", "end", "say", "tell", "see",
        "know", "think", "let", "try", "stick", "choose", "pick", "build", "add", "remove",
        "create", "send", "show", "mean", "come", "work", "happen", "allow", "permit", "ensure",
        "check", "ask", "note", "remember", "help", "pay", "spend", "wait", "exceed", "answer",
        "respond", "found", "find", "caused", "cause", "come", "play", "accept", "approve",
        "approved", "reserve", "agree", "decide", "decided", "confirm",
        "confirmed", "handled", "handle", "own", "lead", "post", "goes", "edit", "touch", "modify",
        "delete", "install", "push", "merge", "refactor", "publish", "translate", "alter",
    ),
    negations=(
        "not", "no", "never", "don't", "dont", "do not", "doesn't", "does not", "cannot", "can't",
        "mustn't", "shouldn't", "won't", "isn't", "aren't", "needn't", "without", "stop", "avoid",
        "skip", "refrain", "forbidden", "hands off", "off limits", "off-limits", "out of scope",
        "no need",
        "no longer", "no more", "not anymore", "nobody", "nothing", "none", "not allowed", "leave",
        "quit", "prohibited", "banned", "ban", "keep away", "stay away", "unnecessary", "optional",
    ),
    denials=(
        "instead of", "rather than", "not", "no longer", "replaces", "in place of", "over", "from",
        "up from", "down from", "used to be",
    ),
    additions=(
        "also", "too", "as well", "in addition", "additionally", "on top of that", "another",
        "plus", "as usual", "same as before", "unchanged",
        "still", "remains", "as agreed", "as you know", "additional",
    ),
    exceptions=(
        "except", "excepted", "exception", "except for", "unless", "just this once", "this time",
        "only this time", "for today", "only for today", "for the moment", "temporarily",
        "once only", "this once", "one-off", "apart from", "other than", "at the moment",
        "for now", "only if", "only when", "in the case of", "in case", "just for",
    ),
    questions=(
        "did you", "do you", "are you", "is it", "is there", "what if", "why", "how about",
        "what about", "could we", "can we", "should we", "shall we", "would it",
    ),
    settings=(
        "is", "are", "be", "was", "were", "use", "uses", "using", "set", "equals", "keep", "keeps",
        "limit", "max", "maximum", "minimum", "under", "within", "at most", "at least",
        "no more than", "exceed", "runs", "lives", "costs", "takes", "called", "named", "prefer",
        "go with", "gets", "has", "stays", "make it", "make that", "make them", "below", "above",
        "becomes", "become", "runs on", "goes", "responsible", "comes from", "caused by", "due to",
        "stems from", "go to", "goes to", "back to",
        "want", "wants", "would like",
    ),
    conjunctions=("and", "but"),
    makers=("make", "turn", "paint", "render", "colour", "color"),
    articles=(
        "the", "a", "an", "our", "my", "your", "its", "their", "his", "her", "this", "that", "each",
        "every", "any", "no", "all", "these", "those",
    ),
    particles=(
        "the", "and", "or", "but", "for", "from", "with", "into", "onto", "that", "this", "these",
        "those", "then", "than", "there", "here", "when", "where", "while", "which", "what", "who",
        "how", "why", "have", "has", "had", "been", "will", "would", "can", "could", "should",
        "must", "may", "might", "shall", "not", "never", "always", "only", "also", "just", "more",
        "please", "you", "your", "our", "we", "they", "them", "their", "its", "it", "it's", "i",
        "a", "an", "in", "on", "at", "to", "of", "by", "as", "if", "so", "do", "don't", "does",
        "did", "any", "all", "each", "every", "let", "let's", "make", "need", "want", "like", "up",
        "everywhere", "anything", "everything", "something", "freely", "whatever", "still", "too",
        "very", "now", "no", "yes", "ok", "okay", "go", "get", "put",
    ),
    asides=(
        "by the way", "btw", "fyi", "heads up", "hi", "hello", "hey", "oh", "well", "hmm", "thanks",
        "size", "length", "amount", "value", "date", "number", "up to",
    ),
    plans=(
        "next", "i'll", "i will", "let me", "now i", "going to", "then i", "about to", "let's",
        "remaining", "still need", "plan to", "start with", "todo", "left to do", "we'll",
    ),
    requests=("can you", "could you", "would you", "will you", "can we", "could we"),
    meanings=ENGLISH_MEANINGS,
    failures=(
        "error", "traceback", "exception", "failed", "failure", "fatal", "not found", "denied",
        "no such", "cannot", "panic", "unable", "refused", "timed out", "timeout", "invalid",
    ),
    finished=("completed", "complete", "done", "finished", "cancelled", "canceled", "closed"),
    active=("in_progress", "in progress", "doing", "active", "started", "running"),
    setbacks=(
        "didn't work", "did not work", "doesn't work", "does not work", "didn't help", "no luck",
        "did not help", "failed", "fails", "gave up", "given up", "reverted", "rolled back",
        "abandoned", "discarded", "dropped", "ruled out", "dead end", "worse", "not viable",
        "blocked", "rejected", "crashed", "killed", "out of memory", "breaks", "broke",
    ),
    remedies=(
        "fixed", "resolved", "solved", "repaired", "works now", "passes now", "pass now",
        "no longer fails", "no longer fail", "gone now",
    ),
    unfinished=(
        "not yet", "yet", "still", "pending", "waiting", "waits", "remaining", "remains", "left",
        "in progress", "running", "unfinished", "open", "unconfirmed", "missing", "to do", "todo",
        "half", "so far", "until", "when it", "once",
    ),
    proposals=(
        "suggest", "recommend", "propose", "shall i", "should i", "want me to", "would you like",
        "i can", "i could", "i would", "i'd", "we could", "how about", "option",
    ),
    agreements=(
        "do that", "do it", "do this", "go with that", "go ahead", "yes", "yep", "yeah", "sure",
        "sounds good", "agreed", "as you suggest", "as proposed", "make it so", "please do",
    ),
    objections=(
        "no,", "no.", "no!", "no;", "no:", "no -", "no we", "no i", "no it",
        "no that", "no this", "no you", "no the", "no use", "nope", "nah", "not that", "not this",
        "not like that", "not like this", "that's wrong", "that is wrong", "wrong", "i disagree",
        "i'd rather", "i would rather", "rather", "hell no", "of course not", "absolutely not",
    ),
    refusals=("don't", "dont", "do not", "never", "stop", "please don't", "please do not"),
    continuations=(
        "continue the conversation", "continue this conversation", "continue from where",
        "continue where", "where we left", "where you left off", "continue with the last task",
        "without asking the user", "without asking any", "session is being continued",
        "please continue",
    ),
    task_lists=("todo list", "to-do list", "task list", "list of tasks", "todos", "todo items"),
    wanted_failures=(
        "should fail", "expected to fail", "expect it to fail", "expect them to fail", "will fail",
        "must fail", "failing test", "failing tests", "fails first", "fail first", "see it fail",
        "see them fail", "watch it fail", "confirm it fails", "confirm they fail",
        "verify it fails", "verify they fail", "check that it fails", "make sure it fails",
        "fails as expected", "fail as expected", "failed as expected", "expected failure",
        "for the right reason", "reproduce", "reproduces", "reproduced", "reproduction",
        "red phase", "is expected", "are expected", "as expected",
    ),
    all_tasks=(
        "all tasks", "all the tasks", "all of the tasks", "all subtasks", "all items", "all todos",
        "all steps", "every task", "all open tasks", "all my tasks", "all planned tasks",
    ),
    nothing_open=(
        "none.", "none identified", "none at", "none currently", "nothing", "no pending", "no open",
        "no remaining", "no outstanding", "no further", "no active", "awaiting", "waiting for user",
        "waiting for the user", "waiting for further", "waiting for your", "waiting for next",
    ),
    withdrawals=(
        "forget", "forget about", "skip", "cancel", "drop", "never mind", "nevermind", "no need",
        "not needed", "don't bother", "don't need", "do not need", "leave out", "scrap",
        "no longer need", "not necessary", "hold off on", "we won't", "i'll do", "i did",
    ),
    acknowledged=(
        "ok", "okay", "k", "thanks", "thank", "you", "thx", "great", "nice", "good", "perfect",
        "cool", "fine", "lgtm", "yes", "yep", "yeah", "sure", "right", "alright", "all", "hm",
        "hmm", "ah", "oh", "wow", "well", "done", "very", "so", "much", "got", "it", "go", "on",
        "continue", "proceed", "looks", "sounds", "awesome", "excellent", "super", "love", "hi",
        "hello", "hey", "please", "ahead", "keep", "going", "job", "work", "morning", "afternoon",
        "evening", "bye", "lovely", "pity", "good catch", "good point", "good luck", "haha", "lol",
        "cheers", "welcome", "you're", "noted", "understood", "brilliant", "see you", "later",
        "no problem", "no worries", "wonderful", "amazing", "gladly", "of course", "certainly",
    ),
    errands=(
        "please", "can you", "could you", "before", "until", "want", "need", "let's", "now",
        "start", "show", "check", "look", "have to", "leave", "within", "not", "no", "under",
    ),
    wishes=(
        "prefer", "preference", "i like", "i'd like", "i hate", "i love", "rather", "favour",
        "favor", "style", "tone", "format", "formatting", "wording", "from now on", "whenever",
        "in general", "instead of", "always", "never", "no tables", "bullet", "bullets", "short",
        "concise", "i want", "ideally", "please don't", "do not use", "don't use", "avoid",
    ),
    roles=(
        "contact", "talk to", "talked to", "ask", "in charge", "responsible", "owner", "owns",
        "boss", "manager", "supervisor", "lead", "head of", "colleague", "assistant", "lawyer",
        "who", "approves", "sign off", "signs off", "handles", "person", "cc", "call", "reach",
        "client", "customer", "engineer", "director", "maintainer", "reviewer",
    ),
    aims=(
        "goal", "aim", "target", "objective", "purpose", "success", "the point is", "what matters",
        "what i want", "we want", "kpi", "in the end", "should end up",
    ),
    states=(
        "state", "status", "where we are", "currently", "so far", "open", "pending", "in progress",
        "not yet", "done", "remaining", "left to do", "still", "running", "waiting", "tried",
    ),
    ordinals=("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"),
    numbers=("one", "two", "three", "four", "five", "six", "seven", "eight"),
    firsts=("first", "top"),
    lasts=("last",),
    whole=("all of them", "all of these", "all of those", "all three", "both", "everything"),
    users=(
        "user messages", "user's messages", "messages from the user", "messages of the user",
        "user said", "user's words", "user prompts", "user requests", "user instructions",
    ),
    goals=(
        "goal", "goals", "decision", "decisions", "requirements", "instructions", "constraints",
        "request", "intent", "preferences", "rules", "objective", "facts", "context", "user",
    ),
    files=("file", "files", "code", "paths", "artifacts"),
    tools=("tool", "tools", "calls", "commands", "actions"),
    status=(
        "status", "task", "tasks", "progress", "next", "current", "pending", "todo", "open",
        "work", "state", "plan", "steps",
    ),
    errors=(
        "error", "errors", "resolutions", "problem", "problems", "failures", "issues", "fixes",
        "bugs", "troubleshooting",
    ),
)  # fmt: skip

CHINESE = Language(
    name="Chinese",
    orders=(
        "必须", "一定", "务必", "不要", "别", "不能", "不可", "不得", "禁止", "不许", "切勿", "勿",
        "只能", "只", "仅", "除非", "除了", "应该", "应当", "需要", "要", "请", "确保", "保证",
        "最多", "至少", "不超过", "不少于", "上限", "下限", "以内", "之前", "截止", "默认", "希望",
        "偏好", "喜欢", "更想", "宁可", "记得", "记住", "保留", "保持", "千万", "注意", "避免",
        "统一", "先", "不准", "无需", "不用", "严禁", "所有", "每", "都", "想", "得", "限制",
    ),
    choices=(
        "决定", "选择", "选用", "采用", "确定", "因为", "原因", "发现", "确认", "结论", "问题是",
        "已修复", "改为", "结果", "定为", "根因", "定了", "拍板", "敲定", "选定", "判断", "放弃",
        "不再讨论",
    ),
    revisions=(
        "改成", "改为", "改用", "换成", "换到", "换用", "其实", "不再", "更正", "取消", "算了",
        "还是", "而不是", "不对", "调整为", "改到", "更新为", "推迟到", "缩短", "延长", "增加到",
        "减少到", "延期到", "提前到", "说错", "放宽", "收紧", "提高到", "降到", "作废", "改一下",
        "变成", "重新", "换", "改", "挪到", "延到", "降到", "升到", "升级到", "调到", "调成",
        "调为",
        "提前", "推迟", "顺延", "改回", "撤回", "废弃", "不用了", "移到", "迁到", "搬到", "交给",
        "接手", "接替", "降为", "升为", "提到", "加到", "减到", "改叫", "更名", "收回", "放开",
        "改由", "从今天起", "缩短到", "延长到", "放宽到", "收紧到", "固定到", "停用", "切到",
        "切换到", "切换成", "替换", "改去", "改在", "改走", "改坐", "改送", "改从", "改放", "改让",
        "改做", "改写", "改发", "改按", "改跟", "改上", "改回", "换个", "换了", "换去", "换在",
        "换做", "撤掉", "去掉", "撤下", "缩到", "涨到", "压到", "加长到", "退回",
    ),
    corrections=(
        "说错", "弄错", "搞错", "记错", "看错", "判断错", "我错了", "错了", "更正", "纠正", "抱歉",
        "不好意思", "误判", "之前不对", "刚才不对", "写错", "口误",
    ),
    updates=(
        "现在", "今后", "以后", "从现在", "起", "新", "已经", "目前", "如今", "吧", "即日",
        "够了", "就行", "就好", "够用",
    ),
    targets=("到", "成", "为", "至", "给"),
    places=("在", "对", "从", "关于", "针对", "按", "以", "跟", "与", "除", "当", "因为", "由于"),
    actions=(
        "做", "放", "写", "打", "开", "存", "给", "来", "去", "设", "定", "改", "换", "调", "跑",
        "保留", "保持", "统一", "使用", "采用", "需要", "走", "交", "弄", "搞", "安排", "处理",
        "控制", "维持", "批", "批了", "进行", "执行", "发", "管", "支付", "固定", "负责", "部署",
    ),
    negations=(
        "不要", "别", "不能", "不可", "不得", "禁止", "不许", "切勿", "勿", "不准", "无需", "不用",
        "严禁", "不必", "不再", "不需要", "不允许", "停止", "避免", "不可以", "不", "别再",
        "没必要",
        "免", "暂停", "不行",
    ),
    denials=("而不是", "不是", "从", "由原来的", "原来的", "不用"),
    additions=(
        "还要", "同时", "再加", "也", "并且", "不变", "照旧", "仍然", "依然",
        "额外", "还是原来", "再说一遍", "照样", "补充",
    ),
    exceptions=(
        "除外", "例外", "除了", "除非", "这次", "仅此一次", "临时", "暂时", "今天先", "的话",
        "这一次", "只有", "本次", "的时候", "如果",
    ),
    questions=("吗", "呢", "是不是", "有没有", "要不要", "能不能", "为什么"),
    settings=(
        "是", "为", "用", "设", "到", "成", "限", "超过", "至少", "最多", "=", "由", "叫", "选",
        "控制在", "限制在", "不超过", "不少于", "上限", "下限", "在", "放在", "保留", "定在",
        "定于",
        "设为", "设成", "定为", "打成", "归", "统一", "采用", "使用", "走", "固定在", "以内",
        "改成", "改为", "改用", "换成", "换到", "换用", "调整为", "改到", "更新为", "推迟到",
        "增加到", "减少到", "延期到", "提前到", "提高到", "降到", "变成", "挪到", "延到", "升到",
        "升级到", "调到", "调成", "调为", "改回", "移到", "迁到", "搬到", "降为", "升为", "提到",
        "加到", "减到", "改叫", "切到", "切换到", "切换成", "缩短到", "延长到", "放宽到", "收紧到",
        "改去", "改在", "改走", "改坐", "改送", "改从", "改放", "改让", "改做", "改写", "改发",
        "改按", "缩到", "涨到", "压到", "加长到", "改由", "交给", "卡在", "付", "换", "需", "给",
        "想要", "要",
    ),
    articles=("一", "每"),
    conjunctions=("并", "并且", "而且", "但", "但是"),
    surnames=tuple(
        "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭"
        "陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤小老阿"
    ),
    particles=(
        "的", "了", "吗", "呢", "吧", "请", "把", "和", "与", "或", "但", "就", "都", "也", "要",
        "现在", "不", "我", "你", "它", "这", "那", "个", "在", "会", "能", "可以", "应该", "必须",
        "需要",
    ),
    asides=(
        "直接", "先", "数", "另外", "此外", "顺便", "对了", "那么", "还有",
        "长度", "大小", "数量", "时间", "日期",
    ),
    plans=("接下来", "下一步", "然后", "准备", "将", "我来", "让我", "随后", "打算", "剩下"),
    requests=("能不能", "能否", "可不可以", "可以不可以"),
    meanings=CHINESE_MEANINGS,
    failures=("错误", "失败", "异常", "找不到", "无法", "拒绝", "超时", "不存在", "无效"),
    finished=("完成", "已完成", "取消", "已取消", "关闭"),
    active=("进行中", "正在"),
    setbacks=(
        "不行", "失败", "放弃", "弃用", "走不通", "行不通", "没用", "回退", "不可行", "不一致",
        "更差", "撤回", "报错", "崩", "不支持", "被拒",
    ),
    remedies=("修复", "修好", "解决了", "已解决", "已修", "不再报错"),
    unfinished=(
        "还没", "尚未", "未", "待", "还差", "剩", "正在", "等", "没写", "没做", "没发", "跑着",
        "进行中", "之后",
    ),
    proposals=("建议", "要不要", "是否", "推荐", "我可以", "可以先", "方案"),
    agreements=("就这么", "就这样", "按你说的", "可以", "同意", "照办", "就按", "行", "好的"),
    objections=(
        "不对", "不是这样", "不是的", "不行", "不好", "不同意", "不，", "不,", "不。", "不！",
        "错了", "不要这样", "别这样", "还是算了", "宁可", "不要.", "不是，",
    ),
    refusals=("不要", "别", "不准", "不许", "禁止", "不用"),
    continuations=("请继续之前", "继续之前的对话", "从中断处继续", "接着上次的对话"),
    task_lists=("待办列表", "任务列表", "待办清单", "任务清单"),
    wanted_failures=("应该失败", "应该会失败", "预期失败", "如预期", "符合预期", "复现"),
    all_tasks=("所有任务", "全部任务", "任务都", "任务全部", "所有步骤", "全部步骤"),
    nothing_open=("无待办", "没有待办", "暂无", "没有未完成", "等待用户", "等待下一步指示"),
    withdrawals=("算了", "不用了", "不做了", "取消", "先不", "跳过", "不需要", "别做", "不必"),
    acknowledged=(
        "好的", "好", "谢谢", "多谢", "嗯", "行", "可以", "继续", "不错", "很好", "收到", "明白",
        "知道了", "辛苦了", "辛苦", "对", "是的", "吧", "了", "啊", "哦", "呢", "没问题", "你好",
        "哈", "太", "棒", "早上好", "晚上好", "下午好", "早", "漂亮", "厉害", "记下", "懂",
        "不客气",
    ),
    errands=("帮我", "请", "先", "想", "要", "看看", "需要", "得", "之前", "都", "麻烦"),
    wishes=(
        "喜欢", "偏好", "最好", "尽量", "一律", "统一", "以后", "习惯", "讨厌", "不爱", "风格",
        "格式", "语气", "希望", "宁可", "更想", "倾向", "别写", "不要用", "别用",
    ),
    roles=(
        "找", "联系", "负责", "对接", "老板", "经理", "主管", "领导", "同事", "老师", "问", "管",
        "点头", "签字", "审批", "法务", "财务", "客户", "接口人", "叫",
    ),
    aims=("目标", "目的", "为了", "指标", "最终", "要达到", "成功", "验收标准"),
    states=("现状", "状态", "当前", "目前", "进度", "进展", "正在", "还没", "剩", "待", "试过"),
    ordinals=("第一", "第二", "第三", "第四", "第五", "第六", "第七", "第八"),
    numbers=("一", "两", "三", "四", "五", "六", "七", "八"),
    firsts=("前", "头"),
    lasts=("最后", "后"),
    whole=("全部", "都做", "全都", "所有的", "都要"),
    users=("用户消息", "用户的消息", "用户原话", "用户说", "用户指令"),
    goals=("目标", "决策", "决定", "需求", "要求", "指令", "约束", "偏好", "规则", "用户", "背景"),
    files=("文件", "代码", "路径"),
    tools=("工具", "调用", "命令"),
    status=("状态", "任务", "进度", "进展", "下一步", "待办", "当前", "计划"),
    errors=("错误", "问题", "异常", "失败", "解决", "故障"),
)  # fmt: skip

# German and French rank only: which of two statements holds is not known by their words.
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

FRENCH = Language(
    name="French",
    orders=(
        "doit", "doivent", "dois", "il faut", "faut", "jamais", "toujours", "pas", "aucun",
        "aucune",
        "seulement", "uniquement", "au plus", "au moins", "au maximum", "maximum", "interdit",
        "autorisé", "éviter", "évite", "évitez", "sans", "sauf", "avant", "limite", "délai",
        "préfère", "préférons", "veux", "voulons", "besoin", "veuillez", "merci de", "attention",
        "obligatoire", "impératif", "chaque", "plutôt", "gardez", "garde", "ne touche", "surtout",
    ),
    choices=(
        "décidé", "décision", "choisi", "retenu", "convenu", "parce que", "car", "raison", "cause",
        "trouvé", "confirmé", "résultat", "corrigé", "on part sur", "validé",
    ),
    setbacks=(
        "échoué", "échec", "ne marche pas", "ne fonctionne pas", "abandonné", "rejeté", "écarté",
        "annulé", "refusé", "sans succès", "n'a pas marché",
    ),
    remedies=("corrigé", "résolu", "réparé", "remarche"),
    unfinished=("pas encore", "encore", "en attente", "reste", "restent", "en cours", "manque"),
    wanted_failures=("doit échouer", "comme prévu", "reproduire"),
    all_tasks=("toutes les tâches", "tous les points", "toutes les étapes"),
    nothing_open=("rien", "aucune tâche", "aucun point"),
    withdrawals=("oublie", "laisse tomber", "plus besoin", "pas besoin", "annule"),
    objections=("non", "pas ça", "pas comme ça", "plutôt", "surtout pas", "faux"),
    refusals=("ne", "n'", "jamais", "arrête"),
    acknowledged=(
        "merci", "parfait", "bien", "très", "super", "bonjour", "salut", "oui", "d'accord",
        "entendu",
        "génial", "beaucoup", "bonsoir", "compris", "noté", "vas-y", "continue", "ça", "marche",
    ),
    errands=("peux-tu", "pouvez-vous", "pas", "avant", "veux", "besoin", "s'il te plaît"),
    wishes=(
        "préfère", "préférons", "plutôt", "style", "ton", "format", "désormais", "toujours",
        "j'aime", "je déteste", "de préférence", "en général", "court", "courte",
    ),
    roles=(
        "contacter", "contactez", "contact", "demande", "demander", "responsable", "chef", "cheffe",
        "directeur", "directrice", "collègue", "monsieur", "madame", "client", "cliente", "charge",
        "s'occupe",
    ),
    aims=("objectif", "but", "cible", "au final", "l'essentiel"),
    states=("état", "statut", "actuellement", "pour l'instant", "jusqu'ici", "en cours", "essayé"),
)  # fmt: skip

SHIPPED = (ENGLISH, CHINESE, GERMAN, FRENCH)

_NOTHING = "(?!)"


class Presence(NamedTuple):
    """Cues of which it only matters whether a text has one of them."""

    words: re.Pattern[str]
    """Those in ASCII, for a folded text: two searches are faster than one for all."""
    parts: re.Pattern[str]
    """The others: none is in a text in ASCII."""

    def found_in(self, text: str) -> bool:
        """Whether the text has any of them."""
        folded = text.casefold()
        if self.words.search(folded):
            return True
        return not folded.isascii() and self.parts.search(folded) is not None

    def count_in(self, text: str) -> int:
        """Return how many different cues the text has."""
        folded = text.casefold()
        found = set(self.words.findall(folded))
        return len(found if folded.isascii() else found | set(self.parts.findall(folded)))


class Picks(NamedTuple):
    """How entries of a list are pointed to."""

    numbers: Mapping[str, int]
    """What each word for a number means; digits mean themselves."""
    first: re.Pattern[str]
    """`first two`: the first of its groups that is not None is the number."""
    last: re.Pattern[str]
    """`last two` or `last one`, likewise."""
    ordinals: Mapping[str, int]
    """What each word for first, second and so on means."""
    ordinal: re.Pattern[str]
    """Any of these words."""
    whole: Presence


@dataclass(frozen=True, slots=True)
class Cues:
    """The tables of some languages, ready to search with; each field as in `Language`."""

    orders: Presence
    choices: Presence
    revisions: Presence
    settings: Presence
    plans: Presence
    finished: Presence
    active: Presence
    setbacks: Presence
    remedies: Presence
    unfinished: Presence
    proposals: Presence
    agreements: Presence
    objections: re.Pattern[str]
    refusals: re.Pattern[str]
    continuations: Presence
    task_lists: Presence
    wanted_failures: Presence
    all_tasks: Presence
    nothing_open: re.Pattern[str]
    withdrawals: Presence
    negations: Presence
    acknowledged: re.Pattern[str]
    errands: Presence
    wishes: Presence
    roles: Presence
    aims: Presence
    states: Presence
    users: Presence
    picks: Picks
    failures: re.Pattern[str]
    goals: re.Pattern[str]
    files: re.Pattern[str]
    tools: re.Pattern[str]
    status: re.Pattern[str]
    errors: re.Pattern[str]
    subjectless: re.Pattern[str]
    """What of a sentence, once folded, says nothing of what it is about."""
    languages: tuple[Language, ...]
    """Those whose tables these are."""


@lru_cache(maxsize=16)
def cues_of(languages: tuple[Language, ...]) -> Cues:
    """Return the tables of the languages as one."""

    def cues(*names: str) -> list[str]:
        found = [cue for name in names for one in languages for cue in getattr(one, name)]
        # The longest first, so that a phrase is found before a word in it.
        return sorted(dict.fromkeys(found), key=len, reverse=True)

    return Cues(
        orders=_presence_of(cues("orders")),
        choices=_presence_of(cues("choices")),
        revisions=_presence_of(cues("revisions")),
        settings=_presence_of(cues("settings")),
        plans=_presence_of(cues("plans")),
        finished=_presence_of(cues("finished")),
        active=_presence_of(cues("active")),
        setbacks=_presence_of(cues("setbacks")),
        remedies=_presence_of(cues("remedies")),
        unfinished=_presence_of(cues("unfinished")),
        proposals=_presence_of(cues("proposals")),
        agreements=_presence_of(cues("agreements")),
        objections=_any_folded(cues("objections")),
        refusals=_any_folded(cues("refusals")),
        continuations=_presence_of(cues("continuations")),
        task_lists=_presence_of(cues("task_lists")),
        wanted_failures=_presence_of(cues("wanted_failures")),
        all_tasks=_presence_of(cues("all_tasks")),
        nothing_open=_any_folded(cues("nothing_open")),
        withdrawals=_presence_of(cues("withdrawals")),
        negations=_presence_of(cues("negations")),
        acknowledged=_any_folded(cues("acknowledged")),
        errands=_presence_of(cues("errands")),
        wishes=_presence_of(cues("wishes")),
        roles=_presence_of(cues("roles")),
        aims=_presence_of(cues("aims")),
        states=_presence_of(cues("states")),
        users=_presence_of(cues("users")),
        picks=_picks_of(languages),
        failures=_any_of(cues("failures")),
        goals=_any_of(cues("goals")),
        files=_any_of(cues("files")),
        tools=_any_of(cues("tools")),
        status=_any_of(cues("status")),
        errors=_any_of(cues("errors")),
        subjectless=_any_folded(cues("particles", "settings", "revisions", "plans")),
        languages=languages,
    )


def _picks_of(languages: Sequence[Language]) -> Picks:
    numbers = {word: n for one in languages for n, word in enumerate(one.numbers, 1)}
    ordinals = {word: n for one in languages for n, word in enumerate(one.ordinals, 1)}
    firsts = [word for one in languages for word in one.firsts]
    lasts = [word for one in languages for word in one.lasts]
    whole = [word for one in languages for word in one.whole]
    return Picks(
        numbers, _counted(firsts, numbers), _counted(lasts, numbers), ordinals,
        _any_folded(list(ordinals)), _presence_of(whole),
    )  # fmt: skip


def _counted(before: Sequence[str], numbers: Mapping[str, int]) -> re.Pattern[str]:
    """Return the pattern of one of the words with a number behind it."""
    count = "|".join([r"\d", *map(re.escape, numbers)])
    return re.compile(rf"(?:{_any_folded([*before]).pattern})\s*({count})(?![A-Za-z0-9])")


def _presence_of(cues: list[str]) -> Presence:
    folded = [cue.casefold() for cue in cues]
    return Presence(re.compile(_words(folded)), re.compile(_parts(folded)))


def _any_of(cues: list[str]) -> re.Pattern[str]:
    return re.compile(f"{_words(cues)}|{_parts(cues)}", re.IGNORECASE)


def _any_folded(cues: list[str]) -> re.Pattern[str]:
    folded = [cue.casefold() for cue in cues]
    return re.compile(f"{_words(folded)}|{_parts(folded)}")


def _words(cues: list[str]) -> str:
    """Return the pattern of the cues in ASCII; where the next character is not, it fails fast."""
    words = "|".join(re.escape(cue) for cue in cues if cue.isascii())
    found = rf"(?<![A-Za-z0-9_])(?=[\x00-\x7f])(?:{words})(?![A-Za-z0-9_])"
    return found if words else _NOTHING


def _parts(cues: list[str]) -> str:
    """Return the pattern of the other cues."""
    return "|".join(re.escape(cue) for cue in cues if not cue.isascii()) or _NOTHING
