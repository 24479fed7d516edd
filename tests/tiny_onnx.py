"""Writes a sentence model whose every vector can be worked out by hand: one table of word vectors, as ONNX.

The bytes follow onnx.proto; only the few fields that such a model needs are written.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

WORDS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "tea": 3, "milk": 4, "query": 5, "passage": 6}
TABLE = [
    [9.0, 9.0, 9.0],
    [0.0, 0.0, 3.0],
    [0.0, 0.0, 1.0],
    [1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0],
    [0.0, 5.0, 0.0],
    [5.0, 0.0, 0.0],
]
_FLOAT, _INT64 = 1, 7


def write(folder: Path, *, pooling: str = "mean", tokens: int = 16) -> Path:
    """A folder laid out like a sentence-transformers model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_model(TABLE))
    template = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template.append({"SpecialToken": {"id": "[SEP]", "type_id": 0}})
    special = {word: {"id": word, "ids": [WORDS[word]], "tokens": [word]} for word in ("[CLS]", "[SEP]")}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "TemplateProcessing", "single": template, "pair": [], "special_tokens": special},
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "config.json").write_text(json.dumps({"hidden_size": len(TABLE[0])}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": tokens}))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens"}
    chosen = {name: name == modes[pooling] for name in modes.values()}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 3, **chosen}))
    return folder


def _model(table: Sequence[Sequence[float]]) -> bytes:
    node = _text(1, "table") + _text(1, "input_ids") + _text(2, "last_hidden_state") + _text(4, "Gather")
    flat = struct.pack(f"<{sum(map(len, table))}f", *(value for row in table for value in row))
    weights = _number(1, len(table)) + _number(1, len(table[0])) + _number(2, _FLOAT) + _text(8, "table")
    graph = _part(1, node) + _text(2, "words") + _part(5, weights + _part(9, flat))
    graph += _part(11, _value("input_ids", _INT64, ["batch", "sequence"]))
    graph += _part(12, _value("last_hidden_state", _FLOAT, ["batch", "sequence", "width"]))
    return _number(1, 8) + _part(7, graph) + _part(8, _text(1, "") + _number(2, 13))


def _value(name: str, kind: int, axes: Sequence[str]) -> bytes:
    shape = b"".join(_part(1, _text(2, axis)) for axis in axes)
    return _text(1, name) + _part(2, _part(1, _number(1, kind) + _part(2, shape)))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _number(tag: int, number: int) -> bytes:
    return _varint(tag << 3) + _varint(number)


def _part(tag: int, body: bytes) -> bytes:
    return _varint(tag << 3 | 2) + _varint(len(body)) + body


def _text(tag: int, text: str) -> bytes:
    return _part(tag, text.encode())
