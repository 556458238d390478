from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from policyctx.definitions.items import Medium
from policyctx.messages.editing import pieces_of, provider_of
from policyctx.tokens.counter import counter_for
from policyctx.tokens.sizes import (
    ANTHROPIC,
    ANTHROPIC_BEFORE_4_7,
    OPENAI,
    ProviderModel,
    media_tokens,
    provider_model,
)
from tests.tokens.test_image_sizes import jpeg, png, segment

COUNTER = counter_for("approximate")


def weight(block: Mapping[str, Any], model: ProviderModel = ANTHROPIC) -> int:
    """Return what the media in a block, or in a message, cost."""
    message = block if "role" in block else {"role": "user", "content": [block]}
    media = [piece for piece in pieces_of(message) if isinstance(piece, Medium)]
    return media_tokens(media, model, COUNTER)


def encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def image(raw: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": encoded(raw)}
    return {"type": "image", "source": source}


def image_url(raw: bytes, **more: str) -> dict[str, Any]:
    url = f"data:image/png;base64,{encoded(raw)}"
    return {"type": "image_url", "image_url": {"url": url, **more}}


def pdf(*pages: str) -> bytes:
    tree = b"1 0 obj<</Type /Pages /Count 9>>endobj\n"
    return b"%PDF-1.4\n" + tree + b"".join(f"2 0 obj<<{p}>>endobj\n".encode() for p in pages)


def document(raw: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "application/pdf", "data": encoded(raw)}
    return {"type": "document", "source": source}


# As the providers' documentation has them.
@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        (ANTHROPIC, 200, 200, 64),
        (ANTHROPIC, 1_000, 1_000, 1_296),
        (ANTHROPIC, 1_920, 1_080, 2_691),
        (ANTHROPIC, 3_840, 2_160, 4_784),
        (ANTHROPIC_BEFORE_4_7, 1_092, 1_092, 1_521),
        (ANTHROPIC_BEFORE_4_7, 1_920, 1_080, 1_560),
        (OPENAI, 1_024, 1_024, 765),
        (OPENAI, 2_048, 4_096, 1_105),
        (OPENAI, 100, 100, 255),
    ],
)
def test_an_image_is_counted_by_its_size(
    model: ProviderModel, width: int, height: int, tokens: int
) -> None:
    assert weight(image(png(width, height)), model) == tokens
    assert weight(image_url(png(width, height)), model) == tokens


@pytest.mark.parametrize("model", [ANTHROPIC, ANTHROPIC_BEFORE_4_7])
@pytest.mark.parametrize("size", [(8_000, 8_000), (8_000, 1), (1, 1), (2_577, 2_576)])
def test_an_image_counts_at_most_the_maximum(model: ProviderModel, size: tuple[int, int]) -> None:
    assert 1 <= weight(image(png(*size)), model) <= model.image.unknown


def test_the_base64_text_does_not_count() -> None:
    assert weight(image(png(280, 280) + b"\x00" * 3_000_000)) == 100


def test_a_photos_size_is_found_behind_its_preview() -> None:
    photo = jpeg(2_800, 280, *[segment(0xE1, b"p" * 60_000)] * 3)
    assert weight(image(photo + b"\x00" * 100_000)) == weight(image(png(2_800, 280)))


def test_low_detail_costs_the_base() -> None:
    assert weight(image_url(png(4_000, 4_000), detail="low"), OPENAI) == 85
    block = {"type": "input_image", "image_url": "https://a.example/b.png", "detail": "low"}
    assert weight(block, OPENAI) == 85


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
        {"type": "image_url", "image_url": "data:image/png,plain"},
        {"type": "image", "source": {"type": "base64", "data": "no base64 \ud800 字"}},
        {"type": "image"},
        {"type": "input_image", "image_url": None},
    ],
)
def test_an_image_of_unknown_size_counts_the_maximum(block: dict[str, Any]) -> None:
    assert weight(block) == 4_784


def test_base64_may_be_wrapped() -> None:
    block = image(png(280, 280))
    block["source"]["data"] = "\n".join(
        [block["source"]["data"][:20], block["source"]["data"][20:]]
    )
    assert weight(block) == 100


@pytest.mark.parametrize(
    ("raw", "pages"),
    [
        (pdf("/Type /Page"), 1),
        (pdf("/Type/Page", "/Type /Page/Parent 1 0 R", "/Type\n/Page"), 3),
        (b"%PDF-1.7" + b"\x01" * 120_000, 3),  # compressed: by its bytes
        (b"", 1),
        (b"/Type/Page " * 10_000, 600),
    ],
)
def test_a_document_is_counted_by_its_pages(raw: bytes, pages: int) -> None:
    assert weight(document(raw)) == pages * 2_250
    file = {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{encoded(raw)}"}
    assert weight({"type": "file", "file": file}, OPENAI) == pages * 1_265
    assert weight({"type": "input_file", **file}, OPENAI) == pages * 1_265


def test_a_document_of_text_counts_as_text() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "x" * 40}
    assert weight({"type": "document", "source": source, "title": "four"}) == 11


def test_a_document_of_blocks_counts_their_contents() -> None:
    inner = [{"type": "text", "text": "x" * 40}, image(png(280, 280))]
    assert weight({"type": "document", "source": {"type": "content", "content": inner}}) == 110
    assert weight({"type": "document", "source": {"type": "content", "content": "word"}}) == 1


def test_a_result_counts_the_media_in_it() -> None:
    parts = [{"type": "text", "text": "seen"}, image(png(280, 280)), image(png(28, 28))]
    assert weight({"type": "tool_result", "tool_use_id": "a", "content": parts}) == 101
    assert weight({"type": "tool_result", "tool_use_id": "a", "content": "text"}) == 0
    assert weight({"role": "tool", "content": [image_url(png(28, 28))]}) == 1


def test_a_block_without_media_counts_zero() -> None:
    assert weight({"type": "text", "text": "x" * 400}) == 0


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("claude-opus-4-5-20251101", ANTHROPIC_BEFORE_4_7),
        ("claude-sonnet-4-20250514", ANTHROPIC_BEFORE_4_7),
        ("claude-3-5-haiku-latest", ANTHROPIC_BEFORE_4_7),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", ANTHROPIC_BEFORE_4_7),
        ("claude-opus-4-7", ANTHROPIC),
        ("claude-opus-5", ANTHROPIC),
        ("claude-some-preview", ANTHROPIC),
        ("gpt-5", OPENAI),
    ],
)
def test_the_constants_follow_from_the_language_model_name(name: str, model: ProviderModel) -> None:
    assert provider_model("openai", name) is model


@pytest.mark.parametrize(
    ("message", "model"),
    [
        ({"role": "user", "content": "hello"}, ANTHROPIC),
        ({"role": "user", "content": [{"type": "tool_result"}]}, ANTHROPIC),
        ({"role": "system", "content": "be kind"}, OPENAI),
        ({"role": "tool", "content": "result"}, OPENAI),
        ({"role": "assistant", "content": None, "tool_calls": []}, OPENAI),
        ({"role": "user", "content": [{"type": "image_url"}]}, OPENAI),
    ],
)
def test_the_provider_is_inferred_from_the_shape_of_messages(
    message: dict[str, Any], model: ProviderModel
) -> None:
    provider = provider_of([{"role": "user", "content": "hi"}, message])
    assert provider_model(provider) is model
