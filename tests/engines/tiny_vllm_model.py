"""The tiny model as a folder that vLLM serves with weights it makes up (``--load-format dummy``)."""

import json
from pathlib import Path
from typing import Any

from tests.engines.tiny_gguf import CHAT_TEMPLATE
from tests.engines.tiny_tokenizer import SPECIAL, TinyTokenizer

LONGEST = 8192
KV_BYTES_A_TOKEN = 256
"""Two layers, keys and values, one head of 32 numbers of two bytes."""


def write_tiny_vllm_model(folder: Path) -> None:
    """Write configuration and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = TinyTokenizer()
    files = {
        "config.json": _config(len(tokenizer.tokens)),
        "generation_config.json": {"eos_token_id": 2, "pad_token_id": 0},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": LONGEST,
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
        "tokenizer.json": _tokenizer(tokenizer),
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def _config(vocabulary: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "max_position_embeddings": LONGEST,
        "vocab_size": -(-vocabulary // 64) * 64,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": None,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "torch_dtype": "bfloat16",
    }


def _tokenizer(tokenizer: TinyTokenizer) -> dict[str, Any]:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    mark = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": n, "content": text, **mark} for n, text in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(tokenizer.tokens)},
            "merges": [list(merge) for merge in tokenizer.merges],
        },
    }
