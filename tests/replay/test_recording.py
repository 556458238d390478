from __future__ import annotations

from policyctx.definitions.items import Message
from policyctx.replay.readers.building import RecordingBuilder, RecordingNames
from policyctx.replay.recording import ModelCall, Recording

UNSENT = "message that no call was made with"
GO, SO, ON = ({"role": "user", "content": text} for text in ("go", "so", "on"))


def built(*steps: Message | list[Message] | None) -> Recording:
    """A message is added, a list begins the context anew, None is a call."""
    builder = RecordingBuilder()
    for step in steps:
        if step is None:
            builder.called()
        elif isinstance(step, list):
            builder.begin_anew(step, why="compaction")
        else:
            builder.add(step)
    return builder.recording("r", "some")


def test_a_call_holds_the_messages_new_since_the_previous_call() -> None:
    recording = built(GO, None, SO, ON, None, None, SO)
    assert [call.new for call in recording.calls] == [(GO,), (SO, ON), ()]
    assert [call.anew for call in recording.calls] == [True, False, False]
    assert recording.after == (SO,)


def test_the_context_grows_in_one_list() -> None:
    contexts = built(GO, None, SO, ON, None).contexts()
    first = next(contexts)
    assert first == [GO]
    assert next(contexts) is first
    assert first == [GO, SO, ON]


def test_another_list_takes_its_place_where_the_context_begins_anew() -> None:
    contexts = built(GO, None, SO, [ON], None).contexts()
    first = next(contexts)
    assert next(contexts) == [ON]
    assert first == [GO]


def test_the_messages_are_those_at_the_end() -> None:
    assert built(GO, None, SO).messages() == [GO, SO]
    assert built(GO, None, [SO, ON], None).messages() == [SO, ON]
    assert built(GO, SO).messages() == [GO, SO]
    assert built().messages() == []


def test_a_compaction_after_the_last_call_replaces_the_context() -> None:
    recording = built(GO, None, SO, [ON])
    assert (recording.after, recording.after_anew) == ((ON,), True)
    assert recording.messages() == [ON]


def test_messages_never_sent_are_counted() -> None:
    recording = built(GO, None, SO, ON, [GO, ON])
    assert recording.not_prompt == {UNSENT: 1}


def test_sent_and_reappearing_messages_are_not_counted_as_unsent() -> None:
    assert built(GO, None, SO, [GO, SO], [GO]).not_prompt == {UNSENT: 1}
    assert built(GO, None, SO, ON, None, [GO, SO], [GO]).not_prompt == {}
    assert built(GO, None, SO, [GO], [GO, SO]).not_prompt == {}


def test_asking_for_the_messages_changes_none() -> None:
    recording = Recording("r", "some", (ModelCall((GO,), anew=True),), (SO,))
    assert recording.messages() == recording.messages() == [GO, SO]


def test_an_invalid_message_is_not_added() -> None:
    builder = RecordingBuilder()
    assert builder.add({"role": "user", "content": [{"type": None}]}) is False
    assert builder.is_empty
    assert builder.not_understood == {"user message": 1}


def test_a_name_that_is_used_again_gets_a_number() -> None:
    names = RecordingNames("s")
    given = [("a", 2), ("a", None), ("a",), ("a", 2), ("",)]
    assert [names.of(*parts) for parts in given] == ["s#a-2", "s#a", "s#a-3", "s#a-2-2", "s#"]


def test_a_list_that_only_grew_is_no_new_list() -> None:
    recording = built(GO, None, SO, [{**GO}, SO, ON], None)
    assert [call.anew for call in recording.calls] == [True, False]
    assert [call.why_anew for call in recording.calls] == [None, None]
    assert recording.messages() == [GO, SO, ON]


def test_a_new_list_has_its_reason_from_the_second_call_on() -> None:
    recording = built([GO], None, [SO], None, ON, None)
    assert [call.why_anew for call in recording.calls] == [None, "compaction", None]
