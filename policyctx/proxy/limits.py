"""`ProxyLimits`: what the proxy takes and keeps at most."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """Bytes, seconds and numbers; the sizes are also those of decoded bodies."""

    body_bytes: int = 128 * 10**6
    """Of a request that the policy may edit. A larger one is refused with status 413."""
    bodies_bytes: int = 512 * 2**20
    """Of all such requests at once that wait for their answers. What comes above it passes through
    without being read."""
    messages: int = 20_000
    """Of a list. A request with more, or above one of the next four, is sent as it came."""
    values: int = 300_000
    """Of the JSON of a body: strings, numbers, lists, objects and so on, at any depth."""
    message_values: int = 50_000
    """Of one message. What reads or writes it holds all threads meanwhile."""
    fields: int = 1_000
    """Of a body, beside its list."""
    decoded_ratio: int = 100
    """Of a compressed body: decoded bytes for each received one, above the first megabyte."""
    large_at_once: int = 2
    """Bodies above a megabyte to which policies are applied at the same time."""
    large_seconds: float = 10
    """For the turn of a large body to begin. Later it is sent as it came."""
    question_bytes: int = 2**20
    """Of a request to the proxy's MCP server."""
    question_values: int = 1_000
    """Of the JSON of such a request. It is read in the event loop."""
    memory_bytes: int = 512 * 2**20
    """Of the last bodies of all conversations. Those used longest ago leave memory above it."""
    idle_seconds: float = 900
    """After which a conversation leaves memory."""
    head_bytes: int = 2**17
    """Of the head of a request."""
    header_seconds: float = 10
    """For the head of a request to arrive, from its first byte or the begin of the connection."""
    body_seconds: float = 30
    """For each `body_piece` of a request's body, or its end, to arrive."""
    body_piece: int = 2**14
    waiting_seconds: float = 120
    """For the next request of a connection to begin."""
    refused_seconds: float = 10
    """For the rest of a body that was refused, so that its client reads the answer."""
    connect_seconds: float = 30
    """For a connection to an upstream."""
    stopping_seconds: float = 5
    """For requests in flight when the proxy is stopped."""
    threads: int = 16
    """In which policies are applied."""
