"""Other libraries' names for things that pybpe has too. Errors mention ours; these names are not aliases."""

from __future__ import annotations

from typing import TypeVar

_Class = TypeVar("_Class", bound=type)
_OURS = {  # what pybpe has -> the names in tiktoken, tokenizers, transformers, nanochat, minbpe and SentencePiece
    "Tokenizer.from_file(path), which takes a folder too, or pybpe.get_encoding(name) for OpenAI's encodings": "load"
    " load_tokenizer from_file from_str from_buffer from_pretrained from_directory from_files AutoTokenizer",
    "pybpe.train(inputs, vocab_size=N, special_tokens=[...]), which makes a new Tokenizer": "train train_from_files"
    " train_from_iterator train_tokenizer BpeTrainer ByteLevelBPETokenizer BasicTokenizer RegexTokenizer",
    "pybpe.train(iter(texts), vocab_size=N, like=tok)": "train_new_from_iterator",
    "Tokenizer(vocab, merges, special_tokens), or get_encoding(name)": "Encoding BPE BPETokenizer",
    "get_encoding(name): cl100k_base for GPT-4, o200k_base for GPT-4o": "encoding_for_model encoding_name_for_model"
    " get_encoding list_encoding_names",
    "token_to_id(token)": "encode_single_token convert_tokens_to_ids encode_special piece_to_id get_bos_token_id",
    "id_to_token(i)": "convert_ids_to_tokens id_to_piece",
    "decode_single_token_bytes(i)": "token_bytes decode_tokens_bytes",
    "byte_lengths()": "get_token_bytes",
    "model.vocab": "vocab token_byte_values",
    "vocab_size": "n_vocab get_vocab_size get_piece_size max_token_value",
    "eot_token": "eos_token_id eos_id bos_id",
    "special_tokens": "special_tokens_set all_special_tokens get_special_tokens is_special_token",
    "encode(text), a method of a Tokenizer": "encode tokenize encode_plus encode_as_ids encode_as_pieces",
    "encode_batch(texts)": "batch_encode_plus encode_ordinary_batch",
    "decode(ids), a method of a Tokenizer": "decode decode_ids convert_tokens_to_string",
    "decode_batch(batch)": "batch_decode decode_bytes_batch",
    "save(path, format)": "export save_bin save_files",
    "replace(template=..., chat_template=..., dropout=...)": "post_processor with_template with_dropout",
    "save_pretrained(folder), for transformers, which has it": "apply_chat_template",
    "extend(special_tokens), which makes a new Tokenizer": "add_tokens add_special_tokens register_special_tokens",
    "model, the tokenizer as plain data, which has it": "normalizer dtype template chat_template dropout",
    "prune(vocab_size=n)": "with_vocab_size",
    "errors, as in pybpe.errors.ArgumentError": "ArgumentError FileError FormatError LimitError UnsupportedError",
}


def unknown_attribute(owner: str, name: str) -> AttributeError:
    """Returns the error to raise if `owner`, the package or a Tokenizer, does not have an attribute."""
    here = next((f": in pybpe it is {ours}" for ours, theirs in _OURS.items() if name in theirs.split()), "")
    return AttributeError(f"{owner} has no attribute {name!r}{here}")


class TheirName:
    """An attribute that is not there, and raises the error that says what it is called here. (A method `__getattr__`
    would do that too, but with it every access to an attribute takes longer, in CPython 3.10 by 0.1 microseconds.)"""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> None:
        name = repr(owner.__name__)
        raise unknown_attribute(f"type object {name}" if instance is None else f"{name} object", self._name)


def answer_their_names(owner: _Class) -> _Class:
    """Gives a class a TheirName for every name that it lacks."""
    for name in " ".join(_OURS.values()).split():
        if not hasattr(owner, name):
            setattr(owner, name, TheirName(name))
    return owner
