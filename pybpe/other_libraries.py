"""The names that other libraries use for functions that pybpe has too. Error messages use them; they are not aliases.

Every error is an AttributeError, so hasattr, dir, copy and pickle see only real attributes. Type checkers do not see
this code (TYPE_CHECKING), so they report each of these names.
"""

from __future__ import annotations

from abc import ABCMeta
from typing import TYPE_CHECKING, Any

_TRAINING = "pybpe.train(inputs, vocab_size=N, special_tokens=[...]), which makes a new Tokenizer"
_TRAINING_ON_TEXTS = "pybpe.train(iter(texts), vocab_size=N)"
_TRAINING_ALIKE = (
    "pybpe.train(iter(texts), vocab_size=N, pattern=tok.pattern, normalizer=tok.normalizer, special_tokens=["
    "*tok.special_tokens], special_ids='first', end_of_text=tok.model.eot), where special_ids='last'"
    " puts special tokens after the merges"
)
_LOADING = "Tokenizer.from_file(path)"
_PRETRAINED = "Tokenizer.from_file(folder) for files, pybpe.get_encoding(name) for OpenAI's encodings"

_OF_TOKENIZER = {
    # constructors and training, of several libraries
    "load": _LOADING,
    "from_str": _LOADING + ", of a file",
    "from_buffer": _LOADING + ", of a file",
    "from_pretrained": _PRETRAINED,
    "from_directory": _LOADING + ", which takes a folder too",
    "train": _TRAINING,
    "train_from_iterator": _TRAINING_ON_TEXTS,
    "train_new_from_iterator": _TRAINING_ALIKE,
    "train_from_files": _TRAINING,
    "get_encoding": "pybpe.get_encoding(name)",
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
    "encode_plus": "encode(text, pair, add_special_tokens=True)",
    "batch_encode_plus": "encode_batch(texts, add_special_tokens=True)",
    "apply_chat_template": "to_hf() or save_pretrained(folder) for transformers, which has it",
    "convert_tokens_to_string": "decode(ids)",
    "vocab_files_names": "save_files(vocab_json, merges_txt)",
    "add_special_token": "extend([token]), which makes a new Tokenizer",
    # nanochat
    "get_bos_token_id": "token_to_id('<|bos|>'), or eot_token",
    "encode_special": "token_to_id(token)",
    "get_special_tokens": "special_tokens",
    # minbpe
    "register_special_tokens": "extend(special_tokens), which makes a new Tokenizer",
    # SentencePiece
    "encode_as_ids": "encode(text)",
    "encode_as_pieces": "[id_to_token(i) for i in encode(text)]",
    "decode_ids": "decode(ids)",
    "piece_to_id": "token_to_id(token)",
    "id_to_piece": "id_to_token(i)",
    "get_piece_size": "n_vocab",
    "eos_id": "eot_token",
    "bos_id": "eot_token, which also begins a text",
}

_OF_PACKAGE = {
    # tiktoken
    "encoding_for_model": "get_encoding(name), where GPT-4's name is cl100k_base, and GPT-4o's o200k_base",
    "encoding_name_for_model": "cl100k_base for GPT-4, o200k_base for GPT-4o: see get_encoding",
    "list_encoding_names": "encodings.NAMES, besides those that get_encoding(name) finds through tiktoken",
    "Encoding": "Tokenizer",
    # training and loading, of several libraries
    "load": _LOADING,
    "load_tokenizer": _LOADING,
    "from_file": _LOADING,
    "from_pretrained": _PRETRAINED,
    "AutoTokenizer": _PRETRAINED,
    "train_from_iterator": _TRAINING_ON_TEXTS,
    "train_new_from_iterator": _TRAINING_ON_TEXTS,
    "train_tokenizer": "train(inputs, vocab_size=N)",
    "BpeTrainer": "train(inputs, vocab_size=N)",
    "ByteLevelBPETokenizer": "train(inputs, vocab_size=N)",
    "BasicTokenizer": "train(inputs, vocab_size=N)",
    "RegexTokenizer": "train(inputs, vocab_size=N, pattern=...)",
    "RustBPETokenizer": "train(inputs, vocab_size=N)",
    "BPE": "Tokenizer(vocab, merges)",
    "BPETokenizer": "Tokenizer(vocab, merges, special_tokens)",
    # methods of a tokenizer
    "encode": "a method: get_encoding('gpt2').encode(text)",
    "decode": "a method: get_encoding('gpt2').decode(ids)",
    "tokenize": "a method: get_encoding('gpt2').encode(text)",
}


def unknown_attribute(owner: str, name: str) -> AttributeError:
    """Returns the error to raise if `owner`, which is the package or Tokenizer, does not have an attribute."""
    names = _OF_PACKAGE if owner.startswith("module") else _OF_TOKENIZER
    here = f": in pybpe it is {names[name]}" if name in names else ""
    return AttributeError(f"{owner} has no attribute {name!r}{here}")


class Answering(ABCMeta):
    """The metaclass of Tokenizer, which raises these errors for class attributes such as Tokenizer.load. It derives
    from ABCMeta, so that a class may derive from Tokenizer and from an abstract class."""

    if not TYPE_CHECKING:  # pragma: no branch (a type checker alone passes over it)

        def __getattr__(cls, name: str) -> Any:
            raise unknown_attribute(f"type object {cls.__name__!r}", name)
