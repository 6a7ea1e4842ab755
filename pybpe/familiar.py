"""What other libraries call the methods of a Tokenizer: for an error that says the name here, not for a second name."""

from __future__ import annotations

_NAMES = {
    # tiktoken.Encoding
    "encode_single_token": "token_to_id(token)",
    "decode_tokens_bytes": "[token_bytes(i) for i in ids]",
    "decode_bytes_batch": "[decode_bytes(ids) for ids in batch]",
    "encode_ordinary_batch": "encode_batch(texts, allowed_special=())",
    "token_byte_values": "vocab.values()",
    "max_token_value": "n_vocab - 1",
    "special_tokens_set": "special_tokens",
    "is_special_token": "i in special_tokens.values()",
    # tokenizers.Tokenizer
    "get_vocab_size": "n_vocab",
    "add_special_tokens": "extend(special_tokens), which makes a new Tokenizer",
    "add_tokens": "extend(special_tokens), which makes a new Tokenizer",
    "post_processor": "template and with_template()",
    # transformers
    "convert_tokens_to_ids": "token_to_id(token)",
    "convert_ids_to_tokens": "id_to_token(i)",
    "batch_decode": "decode_batch(batch)",
    "all_special_tokens": "special_tokens",
    "eos_token_id": "eot_token",
    "tokenize": "[id_to_token(i) for i in encode(text)]",
}


def unknown_attribute(name: str) -> AttributeError:
    """What to raise for an attribute that Tokenizer has not."""
    here = f": here it is {_NAMES[name]}" if name in _NAMES else ""
    return AttributeError(f"'Tokenizer' object has no attribute {name!r}{here}")
