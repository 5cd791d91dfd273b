"""Clients that mean no good, in a process of their own that gives way to everything else.

``python -m tests.benchmarks.flood KIND PORT`` goes on until its standard input ends, and then says what it did.
"""

import json
import os
import select
import socket
import sys
from time import monotonic

import msgspec

from router.proxy.process import allow_open_files

START = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
_TICK_S = 0.01


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """``connections`` at a time, made anew when they end; each sends ``first``, and then ``drip`` again and again."""

    connections: int
    opened_per_s: int
    """Most connections that are made in a second."""
    first: bytes
    drip: bytes = b""
    drips_per_s: int = 0
    """Over all connections."""


KINDS = {
    "slowloris": Kind(connections=2000, opened_per_s=10_000, first=b"P", drip=b"O", drips_per_s=2000),
    "large heads": Kind(connections=2000, opened_per_s=10_000, first=START + b"X-A: " + b"a" * 20_000),
    "large heads by the byte": Kind(
        connections=200, opened_per_s=2000, first=START + b"X-A: " + b"a" * 28_000, drip=b"a", drips_per_s=4000
    ),
    "heads of 8,000 fields": Kind(connections=200, opened_per_s=300, first=START + b"a:\r\n" * 8000 + b"\r\n"),
    "trailers by the byte": Kind(
        connections=200,
        opened_per_s=2000,
        first=START + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"a:\r\n" * 1500 + b"a:",
        drip=b"b",
        drips_per_s=4000,
    ),
    "pipelined metrics, unread": Kind(
        connections=50, opened_per_s=1000, first=b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 1000
    ),
}
"""Numbers are such that the worker has most of its core left, where it does not do more than it must."""


class Flood:
    """One kind of clients, at one port."""

    def __init__(self, kind: Kind, port: int) -> None:
        self._kind = kind
        self._address = ("127.0.0.1", port)
        self._poll = select.epoll()
        self._open: dict[int, socket.socket] = {}
        self._turn: list[socket.socket] = []
        self.opened = 0
        self.ended = 0
        self.sent_bytes = 0
        self.drips = 0

    def run(self) -> None:
        """Go on until standard input ends; say when all connections are there."""
        kind, began_s, is_full = self._kind, monotonic(), False
        self._poll.register(sys.stdin.fileno(), select.EPOLLIN)
        while True:
            for number, _ in self._poll.poll(_TICK_S):
                if number == sys.stdin.fileno():
                    return
                self._end(self._open[number])
            passed_s = monotonic() - began_s
            while len(self._open) < kind.connections and self.opened < passed_s * kind.opened_per_s:
                self._connect()
            while self._open and self.drips < passed_s * kind.drips_per_s:
                self._drip()
            if not is_full and (len(self._open) >= kind.connections or passed_s > 2):
                is_full = True
                print("here", flush=True)

    def _connect(self) -> None:
        self.opened += 1
        client = socket.create_connection(self._address)
        client.setblocking(False)
        self._open[client.fileno()] = client
        self._poll.register(client, select.EPOLLRDHUP)  # their answers they do not read
        self._send(client, self._kind.first)

    def _drip(self) -> None:
        if not self._turn:
            self._turn = list(self._open.values())
        client = self._turn.pop()
        self.drips += 1
        if client.fileno() in self._open:
            self._send(client, self._kind.drip)

    def _send(self, client: socket.socket, data: bytes) -> None:
        try:
            self.sent_bytes += client.send(data)
        except BlockingIOError:
            pass
        except OSError:
            self._end(client)

    def _end(self, client: socket.socket) -> None:
        self.ended += 1
        del self._open[client.fileno()]
        client.close()


def main() -> None:
    kind, port = sys.argv[1], int(sys.argv[2])
    os.nice(19)
    allow_open_files()
    flood, began_s = Flood(KINDS[kind], port), monotonic()
    flood.run()
    passed_s = monotonic() - began_s
    told = {"connections": flood.opened, "ended": flood.ended, "bytes": flood.sent_bytes, "drips": flood.drips}
    print(json.dumps({name: round(number / passed_s) for name, number in told.items()}))


if __name__ == "__main__":
    main()
