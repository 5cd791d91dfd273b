"""A tiny Llama model with random weights in a GGUF file: enough for a real llama.cpp server, useless for anything else.

The tokenizer is byte-level BPE with a few English words as merges, so that a token is several bytes long where the text
is English, and generated text does not always tokenise back to what was generated.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.engines.tiny_tokenizer import SPECIAL, TinyTokenizer

_VERSION = 3
_ALIGNMENT = 32
_UINT32, _FLOAT32, _BOOL, _STRING, _ARRAY, _INT32 = 4, 6, 7, 8, 9, 5
_NORMAL_TOKEN, _CONTROL_TOKEN = 1, 3
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@dataclass(frozen=True)
class Shape:
    """How large the model is."""

    hidden: int = 64
    layers: int = 2
    heads: int = 2
    context: int = 16_384


def write_tiny_gguf(path: Path, shape: Shape | None = None) -> None:
    """Write the model; equal shapes give equal files."""
    shape = Shape() if shape is None else shape
    tokenizer = TinyTokenizer()
    tensors = dict(_tensors(shape, len(tokenizer.tokens)))
    fields = _fields(shape, tokenizer)
    head = b"GGUF" + struct.pack("<IQQ", _VERSION, len(tensors), len(fields))
    head += b"".join(_string(name) + _value(value) for name, value in fields.items())
    offset = 0
    for name, weights in tensors.items():
        dimensions = weights.shape[::-1]
        head += _string(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, 0, offset)
        offset += _padded(weights.nbytes)
    with path.open("wb") as file:
        file.write(head.ljust(_padded(len(head)), b"\0"))
        for weights in tensors.values():
            file.write(weights.tobytes().ljust(_padded(weights.nbytes), b"\0"))


def _fields(shape: Shape, tokenizer: TinyTokenizer) -> Mapping[str, Any]:
    types = [_CONTROL_TOKEN if token in SPECIAL else _NORMAL_TOKEN for token in tokenizer.tokens]
    return {
        "general.architecture": "llama",
        "general.name": "tiny",
        "llama.context_length": shape.context,
        "llama.embedding_length": shape.hidden,
        "llama.block_count": shape.layers,
        "llama.feed_forward_length": 2 * shape.hidden,
        "llama.attention.head_count": shape.heads,
        "llama.attention.head_count_kv": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": shape.hidden // shape.heads,
        "llama.rope.freq_base": 10_000.0,
        "llama.vocab_size": len(tokenizer.tokens),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokenizer.tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": [" ".join(merge) for merge in tokenizer.merges],
        "tokenizer.ggml.eos_token_id": tokenizer.tokens.index("<|im_end|>"),
        "tokenizer.ggml.padding_token_id": tokenizer.tokens.index("<|endoftext|>"),
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def _tensors(shape: Shape, vocabulary: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
    random = np.random.default_rng(0)
    hidden, head = shape.hidden, shape.hidden // shape.heads

    def weights(*size: int) -> NDArray[np.float32]:
        return (random.standard_normal(size) * 0.02).astype(np.float32)

    yield "token_embd.weight", weights(vocabulary, hidden)
    yield "output_norm.weight", np.ones(hidden, np.float32)
    yield "output.weight", weights(vocabulary, hidden)
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", np.ones(hidden, np.float32)
        yield block + "ffn_norm.weight", np.ones(hidden, np.float32)
        yield block + "attn_q.weight", weights(hidden, hidden)
        yield block + "attn_k.weight", weights(head, hidden)
        yield block + "attn_v.weight", weights(head, hidden)
        yield block + "attn_output.weight", weights(hidden, hidden)
        yield block + "ffn_gate.weight", weights(2 * hidden, hidden)
        yield block + "ffn_up.weight", weights(2 * hidden, hidden)
        yield block + "ffn_down.weight", weights(hidden, 2 * hidden)


def _value(value: Any) -> bytes:
    """Encode a typed value of the header."""
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _string(value)
    return _array(value)


def _array(values: Sequence[str] | Sequence[int]) -> bytes:
    kind = _STRING if isinstance(values[0], str) else _INT32
    head = struct.pack("<IIQ", _ARRAY, kind, len(values))
    return head + b"".join(_string(v) if isinstance(v, str) else struct.pack("<i", v) for v in values)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
