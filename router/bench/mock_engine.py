"""Engines that answer at once, for measuring what stands in front of them: one process, many ports, no model.

A prompt that contains a mark of :data:`PACES_S` is streamed with that pause between chunks, any other back to back.
"""

import asyncio

CHUNKS = 64
FAST = b"PACED-FAST"
READING = b"PACED-READING"
PACES_S = {FAST: 0.005, READING: 0.05}
_STREAM = b'"stream":true'
_EVENT = (
    b'data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}\n\n'
)
_CHUNK = b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT)
_END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_BODY = (
    b'{"id":"chatcmpl-0","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":'
    b'"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":8}}'
)
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
_LENGTH = b"content-length: "


class MockConnection(asyncio.Protocol):
    """One connection: request after request."""

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._left = 0
        self._pace_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the transport (called by asyncio)."""
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop what is being streamed (called by asyncio)."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Answer a whole request (called by asyncio)."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        at = head.find(_LENGTH)
        length = 0 if at < 0 else int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0])
        if len(self._buffer) < end + 4 + length:
            return
        body, self._buffer = self._buffer[end + 4 : end + 4 + length], b""
        self._answer(body)

    def _answer(self, body: bytes) -> None:
        if self._transport is None:
            return
        pace_s = next((pace_s for mark, pace_s in PACES_S.items() if mark in body), None)
        if _STREAM not in body:
            self._transport.write(_ANSWER)
        elif pace_s is not None:
            self._transport.write(_STREAM_HEAD)
            self._left, self._pace_s = CHUNKS, pace_s
            self._pace()
        else:
            self._transport.write(_STREAM_HEAD + _CHUNK * CHUNKS + _END)

    def _pace(self) -> None:
        if self._transport is None:
            return
        if self._left == 0:
            self._transport.write(_END)
            return
        self._left -= 1
        self._transport.write(_CHUNK)
        asyncio.get_running_loop().call_later(self._pace_s, self._pace)
