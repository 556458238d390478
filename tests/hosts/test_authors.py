"""Texts that a host, not the user, wrote into the user's messages."""

from __future__ import annotations

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.messages.shapes.built_in import Shapes
from policyctx.policy.models.compaction import Summary

# The packages of hosts take seconds to import.
pytestmark = pytest.mark.slow

WORDS = "Never open the valve of tank 3."


def test_a_summary_of_langchain_is_not_the_users() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.messages import HumanMessage  # noqa: PLC0415

    from policyctx.integrations.langchain import LangChainShape  # noqa: PLC0415

    shape = LangChainShape()
    marks = {"lc_source": "summarization"}
    summary = HumanMessage(f"Here is a summary to date:\n\n{WORDS}", additional_kwargs=marks)
    assert [part.author for part in shape.parts(summary)] == ["summary"]
    assert [part.author for part in shape.parts(HumanMessage(WORDS))] == [""]
    typed = HumanMessage("Go on with tank 4.")
    text = extractive_summary(History([summary, typed], shapes=Shapes([shape])), Summary())
    told = text[text.index("User and [agent], in order:") : text.index("Earlier summary:")]
    assert "- Go on with tank 4." in told
    assert "valve" not in told


def test_what_adk_tells_of_another_agent_is_not_the_users() -> None:
    types = pytest.importorskip("google.genai").types
    from policyctx.integrations.google_contents import GoogleShape  # noqa: PLC0415

    def authors(*texts: str) -> list[str]:
        content = types.Content(role="user", parts=[types.Part(text=text) for text in texts])
        return [part.author for part in GoogleShape().parts(content)]

    assert authors("For context:", f"[brewer] said: {WORDS}") == ["program", "program"]
    transcript = "For context: below is a transcript of what another agent did, quoted"
    assert authors(transcript, WORDS) == ["program", "program"]
    assert authors(f"For context: {WORDS}") == [""]
    assert authors("For context:") == [""]
