"""An engine in a process of its own that dies of a request with a ``seed``, as vLLM 0.32 on the CPU does.

``python -m tests.fakes.mortal_engine KIND`` prints its port. KIND is how it dies of it: ``at once``, or ``as vllm``,
whose server outlives its engine by a moment: it answers 500, says at ``/health`` that it is dead, and then goes.
"""

import asyncio
import json
import os
import sys

from tests.fakes.engine import FakeEngine, Peer, Received, answers_json, http, streams

AT_ONCE = "at once"
AS_VLLM = "as vllm"
LINGERS_S = 0.3
EVENTS = [b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n', b"data: [DONE]\n\n"]


async def _serve(kind: str) -> None:
    engine = FakeEngine()

    async def serve(request: Received, peer: Peer) -> None:
        body = json.loads(request.body or b"{}")
        if "seed" not in body:
            whole = streams(EVENTS) if body.get("stream") else answers_json(b'{"ok":true}')
            await whole(request, peer)
        elif kind == AS_VLLM:
            engine.health = "503 Service Unavailable"
            peer.send(http("500 Internal Server Error", b'{"error":{"message":"EngineCore died","code":500}}'))
            asyncio.get_running_loop().call_later(LINGERS_S, os._exit, 1)
        else:
            os._exit(1)

    engine.default = serve
    await engine.start()
    print(engine.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
