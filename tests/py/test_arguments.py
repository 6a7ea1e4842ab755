"""Arguments passed by mistake: a pybpe.Error in one line that names the argument, never a failure deep inside."""

import ast
import copy
import inspect
import io
import os
import pickle
import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
from commands import parsers

import pybpe
import pybpe.corpus
import pybpe.loading
from pybpe import arguments
from pybpe.arguments import by_caller, can_pass, param
from pybpe.formats.pretrained import chat_template
from pybpe.support.executors import map_by_executor
from pybpe.support.parallel import RunOptions

TEXT = "the cat sat on the mat. " * 20
BYTES = {i: bytes([i]) for i in range(256)}
PAIR = BYTES | {256: b"ab"}


@pytest.fixture(scope="module")
def tok() -> pybpe.Tokenizer:
    return pybpe.train(iter([TEXT]), vocab_size=270, special_tokens=["<|endoftext|>"])


WRONG_TRAININGS: list[tuple[dict[str, Any], str]] = [
    *(({"vocab_size": value}, "vocab_size must be an integer") for value in ("300", 300.0, float("nan"), None, [300])),
    ({"vocab_size": -1}, r"vocab_size -1 is too small: the minimum is 256 \(256 bytes"),
    ({"vocab_size": 256, "special_tokens": ["<s>"]}, "the minimum is 257"),
    ({"vocab_size": 1 << 30}, "vocab_size must be at most 16777216"),
    ({"vocab_size": 10**5000}, "vocab_size must be at most 16777216, not a int too long to show"),
    ({"min_frequency": 2.0}, "min_frequency must be an integer, not 2.0"),
    ({"min_frequency": -1}, "min_frequency must be at least 0"),
    ({"min_frequency": 1 << 64}, "min_frequency must be at most"),
    ({"max_token_length": None}, "max_token_length must be an integer"),
    ({"max_token_length": 0}, "max_token_length must be"),
    ({"digits": 3}, "digits must be"),
    ({"digits": "3-from-left"}, "'3-from-right' or None"),
    ({"workers": 1.5}, "workers must be an integer"),
    ({"workers": 0}, "workers must be at least 1, not 0"),
    ({"max_bytes": "1M"}, "max_bytes must be an integer, not '1M'"),
    ({"max_bytes": 10, "seed": None}, "seed must be an integer"),
    ({"memory_limit": "1G"}, "memory_limit must be an integer"),
    ({"pattern": b"gpt2"}, "pattern must be a name or a regular expression, not bytes"),
    ({"pattern": ""}, "there is no pattern ''"),
    ({"pattern": "gpt2\0"}, "a pattern cannot contain a NUL"),
    *(({"pattern": p}, "regular expression") for p in ("(", "(" * 10_000 + ")" * 10_000, "(?a)(?u)x")),
    ({"pattern": r"(?r)\w+"}, "remove the flag"),
    ({"pattern": "(?bytes)"}, "only [(][?]bytes[)]: a regular expression must follow"),
    ({"pattern": "a|\ud800"}, "a pattern cannot contain a NUL or a lone surrogate"),
    ({"normalizer": ["NFC"]}, "normalizer must be NFC or NFKC"),
    ({"tie_break": ["huggingface"]}, "tie_break must be one of lexicographic, huggingface, rustbpe"),
    ({"tie_break": "random"}, "tie_break must be one of"),
    ({"special_ids": "middle"}, "special_ids must be one of"),
    ({"special_ids": 1}, "special_ids must be one of first, after_bytes, last, not 1"),
    ({"special_tokens": None}, "special_tokens must be a list of strings, not NoneType"),
    ({"special_tokens": "<|x|>"}, "special_tokens must be a list"),
    ({"special_tokens": ["a", "a"]}, "twice"),
    ({"special_tokens": [""]}, "empty"),
    ({"text_key": 5}, "text_key must be a str, not int"),
    ({"base": "tok.json"}, "base must be a Tokenizer, such as Tokenizer.from_file returns, not str"),
    ({"executor": 5}, "executor must be a concurrent.futures.Executor, not int"),
    ({"checkpoint": 5}, "expected a path, not int"),
    ({"inputs": 5}, "inputs must be a path, paths or an iterable of texts, not int"),
    ({"inputs": []}, "inputs is empty"),
    ({"inputs": ["corpus.txt", b"corpus.txt"]}, "inputs mixes paths"),
    ({"inputs": {"corpus.txt"}}, "inputs is a set: pass paths in a list"),
    ({"inputs": {"word": 7}}, "inputs is a dictionary: pass word counts as counts"),
    ({"inputs": "a\0b"}, "a path cannot contain a NUL"),
    ({"inputs": None, "counts": [("a", 1)]}, "counts must be a Counts, or a dictionary"),
    ({"inputs": None, "counts": {"ab": -1}}, "the count of 'ab' must be at least 0"),
    ({"inputs": None, "counts": {"ab": None}}, "the count of 'ab' must be an integer"),
    ({"inputs": None, "counts": {"ab": 3}, "max_bytes": 5}, "they cannot sample counts"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG_TRAININGS)
def test_train_names_the_wrong_argument(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT)
    with pytest.raises(pybpe.errors.ArgumentError, match=message) as caught:
        pybpe.train(**{"inputs": path, "vocab_size": 300} | arguments)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text(TEXT)
    integers = {"vocab_size": 270, "min_frequency": 2, "max_token_length": 5, "max_bytes": 300, "seed": 3, "workers": 2}
    expected = pybpe.train(tmp_path / "corpus.txt", **integers)  # type: ignore[arg-type]
    scalars: dict[str, Any] = {name: numpy.int32(value) for name, value in integers.items()}
    assert pybpe.train(tmp_path / "corpus.txt", checkpoint=tmp_path / "point", **scalars) == expected
    assert pybpe.padded_vocab_size(numpy.uint16(50257)) == 50304


def test_a_pipe_is_no_input_of_a_checkpoint(tmp_path: Path) -> None:
    # The next reading could return a different text.
    with pytest.raises(pybpe.errors.ArgumentError, match=r"/dev/null is a pipe or device"):
        pybpe.train("/dev/null", vocab_size=300, checkpoint=tmp_path / "point")


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        (None, [], "vocab must be a dictionary id -> bytes, not NoneType"),
        (list(BYTES.values()), [], "vocab must be a dictionary"),
        (BYTES | {"x": b"ab"}, [], "an id in vocab must be an integer, not 'x'"),
        (BYTES | {1 << 40: b"ab"}, [], "an id in vocab must be at most 16777215"),
        (BYTES | {-1: b"ab"}, [], "an id in vocab must be at least 0, not -1"),
        (BYTES | {256: "ab"}, [], r"vocab\[256\] must be bytes, not str"),
        (PAIR, None, "merges: missing"),
        (PAIR, [5], r"merges\[0\] must be two bytes objects"),
        (PAIR, [(b"a",)], r"merges\[0\] must be two bytes objects"),
        (PAIR, [(b"a", b"b", b"c")], r"merges\[0\] must be two bytes objects"),
        (PAIR, [("a", "b")], r"merges\[0\] must be two bytes objects"),
        (PAIR, [b"ab"], r"merges\[0\] must be two bytes objects"),
        ({0: b"a"}, [], "byte"),
        (BYTES, [(b"a", b"b")], "merge 0"),
        (BYTES, [(b"a", b"zz")], r"merges\[0\]"),
    ],
)
def test_parts_of_a_tokenizer(vocab: Any, merges: Any, message: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        pybpe.Tokenizer(vocab, merges)


@pytest.mark.parametrize(("specials", "message"), [([""], "empty"), (["<x>", "<x>"], "twice"), ([7], "str")])
def test_special_tokens_of_a_tokenizer(specials: Any, message: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        pybpe.Tokenizer(BYTES, [], specials)


def test_other_arguments(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    gaps = pybpe.Tokenizer(BYTES | {258: b"<s>"}, [], ["<s>"])
    calls: list[tuple[Any, str]] = [
        (lambda: tok.encode_batch(None), "texts must be a sequence of texts, not NoneType"),  # type: ignore[arg-type]
        (lambda: tok.encode_iterable(5), "texts must be an iterable of texts, not int"),  # type: ignore[arg-type]
        (lambda: tok.encode_batch(["a"], 0), "num_threads must be at least 1, not 0"),
        (lambda: tok.encode_to_numpy("a", num_threads=0), "num_threads must be at least 1, not 0"),
        (lambda: tok.encode_batch_to_numpy(["a"], 1.5), "num_threads must be an integer"),  # type: ignore[arg-type]
        (lambda: tok.encode("a", allowed_special=None), "expected 'all' or a set of special tokens, not None"),  # type: ignore[arg-type]
        (lambda: tok.encode("a", allowed_special=[["x"]]), "not special tokens of this tokenizer"),  # type: ignore[list-item]
        (lambda: tok.prune(vocab_size=260.0), "the vocabulary size must be an integer"),  # type: ignore[arg-type]
        (lambda: tok.prune(5), "keep must be ids"),  # type: ignore[arg-type]
        (lambda: tok.prune(), "pass keep or vocab_size"),
        (lambda: tok.prune([1], vocab_size=260), "pass keep or vocab_size"),
        (lambda: tok.save(tmp_path / "x.bin", 2), "format must be one of json, json2, bin, bin1, files"),  # type: ignore[arg-type]
        (lambda: tok.prune([numpy.zeros((2, 2), int)]), "an id in keep must be an integer"),  # type: ignore[list-item]
        (lambda: tok.prune([9999]), "an id in keep must be at most 268, not 9999"),
        (lambda: gaps.prune([97, 257]), "keep: id 257 is unused"),
        (lambda: tok.replace(chat_template="\ud800"), "chat_template contains a lone surrogate"),
        (lambda: tok.replace(chat_template=5), "chat_template must be a str or None"),  # type: ignore[arg-type]
        (lambda: tok.replace(template=True), "template must be a Template or a str"),  # type: ignore[arg-type]
        (lambda: tok.decode_batch(None), "batch must be sequences of ids"),  # type: ignore[arg-type]
        (lambda: pybpe.Tokenizer(BYTES, [], normalizer="nfc"), "normalizer must be NFC or NFKC"),
        (lambda: tok.save_pretrained(5), "expected a path, not int"),  # type: ignore[arg-type]
        (lambda: tok.save(None), "expected a path, not NoneType"),  # type: ignore[arg-type]
        (lambda: pybpe.Tokenizer.from_file(5), "expected a path, not int"),  # type: ignore[arg-type]
        (lambda: pybpe.Tokenizer.from_file(5, merges=5), "expected a path, not int"),  # type: ignore[arg-type]
        (lambda: pybpe.padded_vocab_size(50257, 1.5), "multiple must be an integer"),  # type: ignore[arg-type]
        (lambda: pybpe.Counts.load(5), "expected a path, not int"),  # type: ignore[arg-type]
        (lambda: pybpe.Counts.merge([5]), "counts must be made by count_words, not int"),  # type: ignore[list-item]
        (lambda: pybpe.padded_vocab_size(0), "the vocabulary size must be at least 1"),
    ]
    for call, message in calls:
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            call()
    assert list(tmp_path.iterdir()) == []


class LongBytes(bytes):
    """Bytes that report a length of a million."""

    def __len__(self) -> int:
        return 1_000_000


class OddStr(str):
    """A str whose `encode` returns another class."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:  # type: ignore[override]
        return LongBytes(b"ab")


class OddPath:
    def __fspath__(self) -> int:
        return 5


def test_the_length_of_a_text_is_that_of_its_bytes(tok: pybpe.Tokenizer) -> None:
    """C would trust the length that a class derived from bytes reports."""
    bytes_only = pybpe.Tokenizer(BYTES, [], ["<s>"])
    for text in (LongBytes(b"the cat"), OddStr("the cat"), numpy.bytes_(b"the cat"), numpy.str_("the cat")):
        assert tok.encode(text) == tok.encode_to_numpy(text).tolist() == tok.encode("the cat")
        assert tok.encode_batch([text]) == [tok.encode("the cat")] and tok.count(text) == len(tok.encode("the cat"))
        assert pybpe.train(iter([text]), vocab_size=258) == pybpe.train(iter(["the cat"]), vocab_size=258)
        assert bytes_only.extend([OddStr("<b>")]).vocab_size == 258
    assert pybpe.Tokenizer(BYTES | {256: LongBytes(b"ab")}, [(b"a", LongBytes(b"b"))]).encode("xab") == [120, 256]
    with pytest.raises(pybpe.errors.ArgumentError, match="expected text as str or bytes, not ndarray"):
        tok.encode(numpy.array(["2020"], dtype="M8[s]"))


@pytest.mark.parametrize("path", ["a\ud800", OddPath(), None, 5, b"a\0b"])
def test_what_is_no_path(tok: pybpe.Tokenizer, path: Any, tmp_path: Path) -> None:
    calls: list[Any] = [
        pybpe.Tokenizer.from_file, pybpe.Counts.load, pybpe.Manifest.load, tok.save, tok.save_pretrained,
        partial(pybpe.binarize, tok, out=tmp_path), partial(pybpe.binarize, tok, tmp_path),
        partial(pybpe.encode_files, tok, out=tmp_path / "x.npy"), partial(pybpe.encode_files, tok, tmp_path),
        partial(pybpe.train_bpe, vocab_size=260, special_tokens=[]), partial(pybpe.corpus.clean, tmp_path),
        partial(pybpe.corpus.clean, out=tmp_path / "x.jsonl"),
        partial(pybpe.loading.PackedSequences, sequence_length=3),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(pybpe.errors.ArgumentError, match="a path"):
            call(path)
    assert list(tmp_path.iterdir()) == []


def test_a_path_as_bytes_is_a_path(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    path = bytes(tmp_path / "caf") + b"\xe9.txt"
    with open(path, "wb") as stream:
        stream.write(TEXT.encode())
    assert pybpe.train_bpe(path, 260, []) == pybpe.train_bpe(os.fsdecode(path), 260, [])
    for inputs in ([path], path, numpy.str_(os.fsdecode(path)), list(numpy.array([os.fsdecode(path)]))):
        assert pybpe.encode_files(tok, inputs, bytes(tmp_path / "x.npy")) == tok.count(TEXT)
    assert len(pybpe.loading.PackedSequences(numpy.str_(tmp_path / "x.npy"), 5).ids(0)) == 6
    with pytest.raises(pybpe.errors.ArgumentError, match="texts must be a sequence of texts, not ndarray"):
        tok.encode_batch(numpy.array("text"))  # type: ignore[arg-type]
    with pytest.raises(pybpe.errors.ArgumentError, match="inputs is a set: pass paths in a list"):
        pybpe.binarize(tok, {path}, tmp_path / "out")
    for records, message in (
        ([{"text": "a"}, "a"], "has records .dict. where paths are expected"),
        ({"train": [1]}, "inputs is a dict with the keys 'train': pass one of its values"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.binarize(tok, records, tmp_path / "out")  # type: ignore[arg-type]


def test_integers_of_numpy_are_used_as_those_of_python(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    for path in Path(pybpe.__file__).parent.rglob("*.py"):  # the result of whole_number, which is an int, is used
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                assert getattr(node.value.func, "id", "") not in ("whole_number", "probability"), (path, node.lineno)
    (tmp_path / "t.txt").write_text("a\nb\nc\nd\n")
    given = {"val_documents": 1, "min_shard_tokens": 0, "shard_tokens": 50}
    for kind in (int, numpy.int32):
        numbers: dict[str, Any] = {name: kind(number) for name, number in given.items()}
        pybpe.binarize(tok, tmp_path / "t.txt", tmp_path / kind.__name__, documents="line", **numbers)
    assert (tmp_path / "int" / "manifest.json").read_bytes() == (tmp_path / "int32" / "manifest.json").read_bytes()
    filters = pybpe.corpus.Filters(max_top_ngrams={numpy.int64(2): 0.2})  # type: ignore[dict-item]
    assert filters == pybpe.corpus.Filters(max_top_ngrams={2: 0.2})
    assert [type(n) for n in filters.max_top_ngrams or ()] == [int]


def test_arguments_of_data_sets(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(TEXT)
    calls: list[tuple[dict[str, Any], str]] = [
        *(({"splits": s}, "splits must be 1 to 3") for s in ("8,1,1", None, 5, [float("nan")], [float("inf"), 1])),
        *(({"splits": s}, "splits must be 1 to 3") for s in ((1e308, 1e308), (0, 1), (1, -1), ())),
        *(({name: "colour"}, f"{name} must be") for name in ("format", "split_by", "eot", "dtype")),
        ({"shard_tokens": 0}, "shard_tokens must be"),
        ({"min_shard_tokens": -1}, "min_shard_tokens must be"),
        ({"name": "a/b"}, "name must be a file-name prefix"),
        ({"inputs": []}, "inputs is empty"),
        ({"tok": None}, "tok must be a Tokenizer"),
        ({"name": 5}, "name must be a file-name prefix"),
        ({"name": "a\ud800"}, "name must be a file-name prefix"),
        ({"text_key": "a\ud800"}, "text_key contains a lone surrogate"),
        ({"text_key": 5}, "text_key must be a str"),
        ({"documents": ["line"]}, "documents must be one of"),
        ({"dtype": numpy.uint16}, "dtype must be one of auto, uint16, uint32, not <class 'numpy.uint16'>"),
        ({"val_documents": 10**30}, "val_documents must be at most"),
        ({"inputs": numpy.array(str(tmp_path / "t.txt"))}, "inputs must be a path, paths or .*, not ndarray"),
    ]
    for changes, message in calls:
        arguments = {"tok": tok, "inputs": tmp_path / "t.txt", "out": tmp_path / "out", "progress": False} | changes
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.binarize(**arguments)
    with pytest.raises(pybpe.errors.ArgumentError, match="vocab_size must be an integer"):
        pybpe.prepare(tmp_path / "t.txt", tmp_path / "out", vocab_size="300")  # type: ignore[arg-type]
    with pytest.raises(pybpe.errors.ArgumentError, match="memory_limit must be an integer"):
        pybpe.corpus.clean(tmp_path / "t.txt", tmp_path / "x.jsonl", memory_limit="1G")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["t.txt"]


def test_executors_that_take_no_task(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(TEXT)
    done: list[Any] = [ThreadPoolExecutor(1), ProcessPoolExecutor(1)]
    for executor in done:
        executor.shutdown()
    for call in (
        partial(pybpe.train, tmp_path / "t.txt", vocab_size=300),
        partial(pybpe.binarize, tok, tmp_path / "t.txt", tmp_path / "out"),
        partial(pybpe.corpus.clean, tmp_path / "t.txt", tmp_path / "x.jsonl"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match="executor must be a concurrent.futures.Executor, not int"):
            call(executor=5)
        for executor in done:
            with pytest.raises(pybpe.errors.WorkerError, match="could not do its task .*cannot schedule new futures"):
                call(executor=executor)


# ------------------------------------------------------------------------------------------------------
# Ids


@pytest.mark.parametrize("dtype", "?bBhHiIlLqQO")
def test_every_dtype_that_can_hold_an_id(tok: pybpe.Tokenizer, dtype: str) -> None:
    ids = numpy.array([1, 0, 1], dtype=dtype)
    assert tok.decode_bytes(ids) == tok.decode_bytes([1, 0, 1])
    assert tok.decode(ids[::-1]) == tok.decode([1, 0, 1])
    assert tok.decode_with_offsets(ids) == tok.decode_with_offsets([1, 0, 1])


@pytest.mark.parametrize("dtype", ["e", "d", "g", "D", "S", "U", "m8[s]", "M8[s]", ">f4", "O"])
def test_every_dtype_that_cannot(tok: pybpe.Tokenizer, dtype: str) -> None:
    ids = numpy.array([None, "x"], "O") if dtype == "O" else numpy.array([1, 2]).astype(dtype)
    for decode in (tok.decode, tok.decode_bytes, tok.decode_with_offsets):
        with pytest.raises(pybpe.errors.ArgumentError, match="at position 0 is not an id of this vocabulary"):
            decode(ids)


# ------------------------------------------------------------------------------------------------------
# Objects


def test_tokenizers_are_equal_if_their_ids_are(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    tok.save(tmp_path / "x.json")
    tok.save(tmp_path / "x.bin")
    same = [copy.copy(tok), copy.deepcopy(tok), pickle.loads(pickle.dumps(tok))]
    same += map(pybpe.Tokenizer.from_file, (tmp_path / "x.json", tmp_path / "x.bin"))
    same += [pickle.loads(pickle.dumps(each)) for each in same[-2:]]  # they keep their tokens in C
    assert all(each.model.tokens == tok.model.tokens and each.model.merges == tok.model.merges for each in same)
    assert all(tok == other for other in same) and len({tok, *same}) == 1
    others = [tok.prune(vocab_size=265), tok.extend(["<s>"]), tok.replace(template="$A <|endoftext|>"), "tok"]
    assert all(tok != other for other in others)


def test_errors_of_files_are_one_line_and_survive_pickling() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        pybpe.train("/missing.txt", vocab_size=300)
    assert str(caught.value) == "/missing.txt: cannot be opened: No such file or directory"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.errno) == (type(caught.value), str(caught.value), 2)


def test_streams_are_iterables_of_their_lines() -> None:
    lines = "aa bb\nbb aa\n"
    expected = pybpe.train(iter(lines.splitlines(keepends=True)), vocab_size=258)
    assert pybpe.train(io.StringIO(lines), vocab_size=258) == expected
    assert pybpe.train(io.BytesIO(lines.encode()), vocab_size=258) == expected


def test_a_bar_is_hidden_by_whatever_is_false(capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (False, 0, numpy.False_):
        pybpe.train(iter([TEXT]), vocab_size=260, progress=progress)  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
    pybpe.train(iter([TEXT]), vocab_size=260, progress=True)
    assert "merging" in capsys.readouterr().err


def test_templates_by_hand() -> None:
    """ "$1" is the first text with type 1, as in Hugging Face's files; the second text is always spelled $B."""
    template = pybpe.Template.parse("<s> $1", "<s> $0 $B:1")
    assert template == pybpe.Template.parse("<s> $A:1", "<s> $A $B:1")
    assert template.apply({"<s>": 1}, [10], [20]) == [1, 10, 20]
    with pytest.raises(pybpe.errors.ArgumentError, match=r"are \$A and \$B, not '\$C'"):
        pybpe.Template.parse("$C", "$A $B")
    with pytest.raises(pybpe.errors.ArgumentError, match="bos and eos are both None"):
        pybpe.Template.around()


def test_a_file_has_its_own_pattern_and_special_tokens(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    tok.save(tmp_path / "t.bin")
    with pytest.raises(pybpe.errors.ArgumentError, match="has its own pattern: leave out pattern"):
        pybpe.Tokenizer.from_file(tmp_path / "t.bin", pattern="gpt2")
    tok.save(tmp_path / "t.json")
    for name in ("t.bin", "t.json"):
        with pytest.raises(pybpe.errors.ArgumentError, match="has its own special tokens: leave out special_tokens"):
            pybpe.Tokenizer.from_file(tmp_path / name, special_tokens={"<|endoftext|>": 0})


def test_special_tokens_of_a_set_are_sorted() -> None:
    assert pybpe.train(iter([TEXT]), vocab_size=300, special_tokens={"<b>", "<a>", "<c>"}).special_tokens == (
        pybpe.train(iter([TEXT]), vocab_size=300, special_tokens=["<a>", "<b>", "<c>"]).special_tokens
    )
    with pytest.raises(pybpe.errors.ArgumentError, match="contains a lone surrogate"):
        pybpe.train(iter([TEXT]), vocab_size=300, special_tokens=["<\ud800>"])


def test_counts_are_added_to_counts_and_equal_only_counts() -> None:
    counts = pybpe.count_words(iter([TEXT]))
    with pytest.raises(TypeError, match="unsupported operand"):
        counts + 1  # type: ignore[operator]
    assert counts != 1 and counts == pybpe.count_words(iter([TEXT]))


def test_a_chat_template_can_be_removed(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    assert tok.replace(chat_template="{{ x }}").model.chat_template == "{{ x }}"
    chat = pybpe.Tokenizer(BYTES, [], {"<|im_start|>": 256, "<|im_end|>": 257})
    none = chat.replace(chat_template=None)
    assert chat_template(chat.model) is not None and chat_template(none.model) is None
    none.save_pretrained(tmp_path)
    assert "chat_template" not in (tmp_path / "tokenizer_config.json").read_text()
    assert chat_template(pybpe.Tokenizer.from_file(tmp_path).model) is None
    with pytest.raises(pybpe.errors.UnsupportedError, match="that there is no chat template"):
        none.save(tmp_path / "none.bin")


def test_a_parameter_is_spelled_as_the_caller_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def spelled() -> list[str]:
        some = [param("eot"), param(eot="none"), param(text="a b"), param(splits=(8, 1, 1)), param(pack=True)]
        return [*some, param(resume=False), param("an id in keep"), param(input_name=3), by_caller("here", "there")]

    assert spelled()[:5] == ["eot", "eot='none'", "text='a b'", "splits=(8, 1, 1)", "pack=True"]
    assert spelled()[5:] == ["resume=False", "an id in keep", "input_name=3", "here"] and can_pass("nothing")
    names = {name: "--" + name for name in ("eot", "text", "splits", "pack")} | {"resume": "--no-resume"}
    monkeypatch.setattr(arguments, "flags", names)
    assert spelled()[:5] == ["--eot", "--eot none", "--text 'a b'", "--splits 8,1,1", "--pack"]
    assert spelled()[5:] == ["--no-resume", "an id in keep", "input_name 3", "there"] and not can_pass("nothing")
    with ProcessPoolExecutor(1) as executor:
        work = partial(arguments.one_of, "eot", choices=["none"])
        with pytest.raises(pybpe.errors.ArgumentError, match="^--eot must be one of none, not 'x'"):
            list(map_by_executor(work, ["x"], RunOptions(executor=executor)))


def _said(tree: ast.AST) -> Iterator[str]:
    """Yields the texts of a module, without docstrings, and without those for one kind of caller."""
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else getattr(node, "name", "")
        if name in ("by_caller", "can_pass", "option", "param", "__repr__"):
            left_out.update(ast.walk(node))
        elif isinstance(node, ast.Expr):  # a docstring
            left_out.add(node.value)
        elif isinstance(node, ast.JoinedStr) and node not in left_out:
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            left_out.update(node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield node.value


def test_messages_have_neither_flags_nor_the_spelling_of_python(root: Path) -> None:
    """Except in commands to type, in `...`, and in calls. A parameter that commands have, too, is named by `param`."""
    no_messages = {"_lazy.py", "control_tokens.py", "report.py", "assets"}
    names = "|".join({name for command in parsers().values() for name in command.flags if "_" in name})
    wrong = re.compile(rf"(?<![\w-])--[a-z]|(?<![\w.])[a-z_]+=(?![\x22])|\b(?:{names})\b|\{{param")
    found = []
    for path in (*root.glob("pybpe/**/*.py"), *root.glob("llmc_compat/**/*.py")):
        if not no_messages & set(path.parts) and "cli" not in (path.stem, path.parent.name):
            for text in _said(ast.parse(path.read_text(encoding="utf-8"))):
                plain = re.sub(r"`[^`]*`|\w+\([^)]*\)|(?:pip install|zstd -d) --\S+", "", text)
                found += [f"{path.name}: {text}" for _ in wrong.findall(plain) if " " in text.strip()]
    assert not found


OF_OTHERS = {"DataLoader", "ProcessPoolExecutor", "Trainer", "save_pretrained", "get_context"}


def _proposed(root: Path) -> Iterator[tuple[str, str]]:
    """Yields each text of the packages that may be a message, with the name of its file."""
    for path in (*root.glob("pybpe/**/*.py"), *root.glob("llmc_compat/**/*.py")):
        left_out: set[ast.AST] = set()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):
                left_out.add(node.value)
            elif isinstance(node, ast.FunctionDef) and node.name == "__repr__":
                left_out.update(ast.walk(node))
            elif isinstance(node, ast.JoinedStr) and node not in left_out:
                left_out.update(node.values)
                yield path.name, "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
                yield path.name, node.value


def test_commands_in_messages_can_be_typed(root: Path) -> None:
    """They are in `...`. Those with an operand are whole; others name a command or an option of it."""
    commands = parsers()
    found = []
    for name, text in _proposed(root):
        bare = re.sub(r"`[^`]*`", "", text) if " " in text else ""
        found += [f"{name}: not in `...`: {text}" for word in re.findall(r"\bpybpe ([a-z]+)", bare) if word in commands]
        for line in re.findall(r"`pybpe ([a-z][^`]*)`", text):
            words = shlex.split(line)
            size = next((n for n in (3, 2, 1) if " ".join(words[:n]) in commands), 0)
            if not size:
                prefix = " ".join(words) + " "
                found += [f"{name}: {line}"] * (not any(command.startswith(prefix) for command in commands))
                continue
            command, rest = commands[" ".join(words[:size])], words[size:]
            options = command._option_string_actions
            if rest and not rest[0].startswith("-"):
                given = [re.sub(r"\{.*\}|^[A-Z]+$", "1", word) for word in rest]
                try:
                    command.parse_args(given)
                except SystemExit:
                    found.append(f"{name}: {line}")
            found += [f"{name}: {line}" for word in rest if word.startswith("-") and word not in options]
    assert not found


def test_calls_in_messages_can_be_made(root: Path) -> None:
    places = (pybpe, pybpe.Tokenizer, pybpe.corpus, pybpe.loading)
    found = []
    for name, text in _proposed(root):
        for called, arguments_ in re.findall(r"([\w.]+)\(([^()]*)\)", text if " " in text else ""):
            last, keywords = called.split(".")[-1], re.findall(r"(?:^|, )(\w+)=", arguments_)
            if last in OF_OTHERS:
                continue
            target = next((getattr(place, last) for place in places if hasattr(place, last)), None)
            if target is None:
                found += [f"{name}: {called}({arguments_})"] * bool(keywords)
            elif callable(target):
                known = inspect.signature(target).parameters
                found += [f"{name}: {called}({key}=)" for key in keywords if key not in known]
    assert not found
