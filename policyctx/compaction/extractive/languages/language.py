"""`Language`: the words of one language that tell the parts of a conversation apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """The cues of one language, each a word or phrase in lower case.

    Where letters are ASCII a cue is found as a whole word, elsewhere anywhere in the text.
    """

    name: str
    orders: tuple[str, ...] = ()
    """Obligations, prohibitions, preferences and limits."""
    choices: tuple[str, ...] = ()
    """Words of a sentence that states a decision or a finding."""
    revisions: tuple[str, ...] = ()
    """Words of a statement that takes an earlier one back."""
    settings: tuple[str, ...] = ()
    """Words that come before the value that something is given, such as `is` and `use`."""
    particles: tuple[str, ...] = ()
    """Other words that do not show the subject of a sentence."""
    corrections: tuple[str, ...] = ()
    """Words with which a writer corrects an earlier mistake."""
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
    """Verbs that show little of the subject of a sentence."""
    negations: tuple[str, ...] = ()
    """Words that make an order a prohibition, or end an obligation."""
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
    """Words that announce the next act."""
    failures: tuple[str, ...] = ()
    """How a failed result begins or ends."""
    finished: tuple[str, ...] = ()
    """The states of a task that needs no more work."""
    active: tuple[str, ...] = ()
    """The states of a task that is being worked on."""
    setbacks: tuple[str, ...] = ()
    """Words which say that an attempt did not work."""
    remedies: tuple[str, ...] = ()
    """Words which say that a problem is solved."""
    unfinished: tuple[str, ...] = ()
    """Words which say that something is not done yet, or still runs."""
    proposals: tuple[str, ...] = ()
    """Words with which the agent offers to do something."""
    agreements: tuple[str, ...] = ()
    """How the user accepts an offer without repeating it."""
    objections: tuple[str, ...] = ()
    """How a reply begins that turns down what was said before it; with the sign after it if any."""
    refusals: tuple[str, ...] = ()
    """How a reply begins that may turn down what was proposed, or only forbid something else."""
    continuations: tuple[str, ...] = ()
    """Texts that a client writes to continue a session; they are not tasks."""
    task_lists: tuple[str, ...] = ()
    """Names of a list of tasks: writing such a list is not a step of the work."""
    wanted_failures: tuple[str, ...] = ()
    """What the agent says of a failure that it wants, such as a test before the code."""
    all_tasks: tuple[str, ...] = ()
    """Names for all entries of a list of tasks."""
    nothing_open: tuple[str, ...] = ()
    """How a line begins that says that nothing is left to do."""
    withdrawals: tuple[str, ...] = ()
    """Words with which the user takes a task back."""
    acknowledged: tuple[str, ...] = ()
    """Words that only say that something was heard."""
    errands: tuple[str, ...] = ()
    """Words of orders that hold for one act rather than for all later work, such as `please`."""
    wishes: tuple[str, ...] = ()
    """Words of a wish for all later work: preferences, formats, habits."""
    roles: tuple[str, ...] = ()
    """Words of a sentence that states the role of a person."""
    aims: tuple[str, ...] = ()
    """Words of a sentence that states an aim or a measure of success."""
    states: tuple[str, ...] = ()
    """Labels and words of a sentence that states how far the work is, such as `status`."""
    ordinals: tuple[str, ...] = ()
    """The words for first, second and so on, in order."""
    numbers: tuple[str, ...] = ()
    """The words for one, two and so on, in order."""
    firsts: tuple[str, ...] = ()
    """Words before a number that counts from the beginning of a list."""
    lasts: tuple[str, ...] = ()
    """Words that refer to the end of a list."""
    whole: tuple[str, ...] = ()
    """Words that refer to all of a list."""
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
