"""Eval files: as llm.c's scripts write them, and as its EvalLoader reads them."""

import gzip
import json
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import pybpe_command
from hypothesis import given, settings
from hypothesis import strategies as st

import pybpe
from llmc_compat import evals
from llmc_compat.evals import EvalFacts, Example
from pybpe.errors import ArgumentError, FormatError, LimitError, PybpeWarning

ROOF = {
    "context": "A man is sitting on a roof. he",
    "completions": ["wraps skis.", "rips tiles off.", "holds a cube.", "starts pulling up roofing."],
    "label": 3,
}
BOAT = {"context": "The boat", "completions": ["sank.", "sailed.", "rose.", "<|endoftext|>"], "label": 0}


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., Path]:
    def write(*records: Any) -> Path:
        path = tmp_path / "evals.jsonl"
        path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in records))
        return path

    return write


def written_out(examples: list[tuple[list[int], list[list[int]], int]]) -> bytes:
    """Returns the file that the comment of llm.c's write_evalfile describes, byte by byte."""
    records = []
    for index, (context, completions, label) in enumerate(examples):
        stream = [65535, 0, index, label, len(completions), len(context)] + context
        for completion in completions:
            stream += [len(completion)] + completion
        stream[1] = len(stream) * 2
        records.append(b"".join(field.to_bytes(2, "little") for field in stream))
    header = [20240522, 1, len(examples), max(map(len, records))] + [0] * 252
    return b"".join(field.to_bytes(4, "little") for field in header) + b"".join(records)


def oracle(
    tok: pybpe.Tokenizer, record: dict[str, Any], separator: str = " "
) -> tuple[list[int], list[list[int]], int]:
    plain = [tok.encode_ordinary(separator + text) for text in record["completions"]]
    return tok.encode_ordinary(record["context"]), plain, record["label"]


# ------------------------------------------------------------------------------------------------------
# Encoding


@pytest.mark.filterwarnings("ignore:.*nothing separates")
def test_lines_become_examples_with_a_space_before_completions(
    tok: pybpe.Tokenizer, jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    hellaswag = {"ind": 24, "ctx": ROOF["context"], "endings": ROOF["completions"], "label": 3, "ctx_a": "A man"}
    path = jsonl(ROOF, "\n", "  \n", BOAT, hellaswag)
    examples = list(evals.encode_examples(tok, path))
    expected = [oracle(tok, record) for record in (ROOF, BOAT, ROOF)]
    assert [(e.context, e.completions, e.label) for e in examples] == expected
    assert tok.decode(examples[0].completions[0]) == " wraps skis."
    assert tok.eot_token not in examples[1].completions[3]  # the text cannot forge it
    plain = list(evals.encode_examples(tok, path, separator=""))
    assert plain[0].completions == oracle(tok, ROOF, "")[1]
    packed = tmp_path / "evals.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(evals.encode_examples(tok, packed)) == examples
    with open(path, "rb", buffering=0) as stream:
        assert list(evals.encode_examples(tok, stream)) == examples


def test_words_that_would_be_joined_are_named(tok: pybpe.Tokenizer, jsonl: Callable[..., Path]) -> None:
    chinese_record = {"context": "天黑了，他", "completions": ["点起灯", "吃太阳", "是石头", "飞上天"], "label": 0}
    spaced = {**BOAT, "completions": [" sank", " sailed", " rose", "."]}
    path = jsonl(chinese_record, spaced, {**BOAT, "context": "The boat "})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(evals.encode_examples(tok, path, separator=""))
        list(evals.encode_examples(tok, jsonl(BOAT)))
    path = jsonl(chinese_record, BOAT, BOAT)
    with pytest.warns(
        PybpeWarning, match="evals.jsonl: line 2: nothing separates 'The boat' and 'sank.': put"
    ) as found:
        list(evals.encode_examples(tok, path, separator=""))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ("{\n", "not JSON"),
        ("[1]\n", "expected an object"),
        ({**ROOF, "context": ""}, "context must be"),
        ({**ROOF, "context": 3}, "context must be"),
        ({**ROOF, "completions": ["a", "b", "c"]}, "3 completions; llm.c takes exactly 4"),
        ({**ROOF, "completions": ["a", "b", "c", "d", "e"]}, "5 completions"),
        ({**ROOF, "completions": ["a", "b", "c", ""]}, "completions must be"),
        ({**ROOF, "completions": "abcd"}, "completions must be"),
        ({**ROOF, "label": 4}, "label must be"),
        ({**ROOF, "label": -1}, "label must be"),
        ({**ROOF, "label": True}, "label must be"),
        ({**ROOF, "label": "3"}, "label must be"),
        ({"context": "a", "completions": ROOF["completions"]}, "label must be"),
        ("[" * 100_000 + "\n", "not JSON"),
        ("\xff\n", "not JSON"),
    ],
)
def test_a_bad_line_is_named(tok: pybpe.Tokenizer, jsonl: Callable[..., Path], record: Any, problem: str) -> None:
    path = jsonl(ROOF, "\n", record)
    with pytest.raises(FormatError, match=f"evals.jsonl: line 3: .*{problem}") as caught:
        list(evals.encode_examples(tok, path))
    assert caught.value.offset == len(json.dumps(ROOF)) + 2
    with pytest.raises(LimitError, match="line 2: takes [0-9]+ bytes; an example can have at most 65534"):
        list(evals.encode_examples(tok, jsonl(ROOF, {**ROOF, "context": "qZ" * 20_000})))


# ------------------------------------------------------------------------------------------------------
# Files


def test_the_file_is_the_one_written_out(tok: pybpe.Tokenizer, jsonl: Callable[..., Path], tmp_path: Path) -> None:
    examples = list(evals.encode_examples(tok, jsonl(ROOF, BOAT, ROOF)))
    facts = evals.write_eval(tmp_path / "e.bin", iter(examples))
    expected = [oracle(tok, r) for r in (ROOF, BOAT, ROOF)]
    assert (tmp_path / "e.bin").read_bytes() == written_out(expected)
    assert evals.read_eval(tmp_path / "e.bin") == examples
    longest = 2 * (10 + len(expected[0][0]) + sum(map(len, expected[0][1])))
    row = len(expected[0][0]) + max(map(len, expected[0][1]))
    assert facts == EvalFacts(3, longest, row, max(i for c, e, _ in expected for part in (c, *e) for i in part))
    assert evals.eval_facts(tmp_path / "e.bin") == facts


parts = st.lists(st.integers(0, 65534), min_size=1, max_size=9)
examples_ = st.lists(
    st.builds(Example, parts, st.lists(parts, min_size=4, max_size=4), st.integers(0, 3)), min_size=1, max_size=6
)


@settings(max_examples=25)
@given(examples_)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, examples: list[Example]) -> None:
    path = tmp_path_factory.mktemp("evals") / "e.bin"
    evals.write_eval(path, examples)
    assert path.read_bytes() == written_out([(e.context, e.completions, e.label) for e in examples])  # type: ignore[misc]
    assert evals.read_eval(path) == examples


def small(size: int = 1, token: int = 7) -> Example:
    return Example([token] * size, [[1], [2], [3], [4]], 2)


@pytest.mark.parametrize(
    ("example", "problem"),
    [
        (small(token=65535), "example 1 has the token 65535; an eval file holds 0 to 65534"),
        (small(token=-1), "example 1 has the token -1"),
        (small(0), "example 1 has an empty context"),
        (Example([1], [[1], [2], [], [4]], 0), "example 1 has an empty context or completion"),
        (Example([1], [[1], [2], [4]], 0), "example 1 has 3 completions"),
        (Example([1], [[1]] * 4, 4), "example 1 has the label 4"),
        (small(32754), "example 1 takes 65536 bytes"),
    ],
)
def test_what_no_file_can_hold_is_refused(tmp_path: Path, example: Example, problem: str) -> None:
    with pytest.raises(LimitError, match=problem):
        evals.write_eval(tmp_path / "e.bin", [small(), example])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_largest_that_a_file_can_hold(tmp_path: Path) -> None:
    largest = small(32753, 65534)
    facts = evals.write_eval(tmp_path / "e.bin", [largest])
    assert facts.longest_bytes == 65534 and evals.read_eval(tmp_path / "e.bin") == [largest]
    assert evals.write_eval(tmp_path / "e.bin", [small()] * 65535).examples == 65535
    with pytest.raises(LimitError, match="example 65535 is one too many"):
        evals.write_eval(tmp_path / "e.bin", (small() for _ in iter(int, 1)))
    with pytest.raises(ArgumentError, match="no example"):
        evals.write_eval(tmp_path / "e.bin", [])


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.bin"
    evals.write_eval(path, [small(3), small(2)])
    data = path.read_bytes()
    for cut in (0, 3, 1023, 1024, 1025, 1030, len(data) - 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(FormatError, match="e.bin: "):
            evals.read_eval(path)
    for offset, message in (
        (0, "magic"), (4, "version"), (8, "example 2 is cut off"), (12, "has 34 bytes, but the header says 35"),
        (1024, "example 0"), (1026, "example 0"), (1028, "example 0"), (1030, "example 0"), (1032, "example 0"),
        (1034, "example 0"), (1042, "example 0"), (1024 + 34 + 2, "example 1"),
    ):  # fmt: skip
        damaged = bytearray(data)
        damaged[offset] += 1 if offset != 1024 else -1
        if offset == 1030:
            damaged[offset] = 4  # a label
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=message):
            evals.read_eval(path)
    for count in (0, -1):
        path.write_bytes(data[:8] + count.to_bytes(4, "little", signed=True) + data[12:])
        with pytest.raises(FormatError, match="the header says that there are"):
            evals.read_eval(path)
    for longest in (0, 2, 26, -1, -(2**31)):  # llm.c allocates this size, and does not check the examples
        path.write_bytes(data[:12] + longest.to_bytes(4, "little", signed=True) + data[16:])
        with pytest.raises(FormatError, match=r"e\.bin.*(overflows its buffer|llm\.c aborts)"):
            evals.read_eval(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(FormatError, match="has 1 byte after the last example"):
        evals.read_eval(path)


# ------------------------------------------------------------------------------------------------------
# llm.c's loader


def rows_of(example: Example) -> list[str]:
    """Returns what the program prints for an example: the whole row is input; the completion's tokens are targets."""
    lines = []
    for completion in example.completions:
        row = [*example.context, *completion]
        lines.append(f"{example.label} {' '.join(map(str, row))} | {' '.join(map(str, completion))}")
    return lines


def serve(program: Path, *args: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([program, *map(str, args)], capture_output=True, text=True, check=False)


def test_the_drop_in_loader_serves_them(
    c_program: Callable[[str], Path], tok: pybpe.Tokenizer, jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    program, path = c_program("eval_rows"), tmp_path / "e.bin"
    examples = list(evals.encode_examples(tok, jsonl(ROOF, BOAT, BOAT, ROOF, BOAT)))
    facts = evals.write_eval(path, examples)
    for B, processes in ((4, 1), (11, 1), (8, 2), (4, 3), (4, 5)):
        each = -(-5 // processes)
        for rank in range(processes):
            expected = [line for example in examples[rank * each : (rank + 1) * each] for line in rows_of(example)]
            result = serve(program, path, B, facts.min_T, rank, processes)
            assert result.stdout.splitlines() == expected, result.stderr
    result = serve(program, path, 4, facts.min_T - 1, 0, 1)
    assert result.returncode == 1 and "do not fit" in result.stderr
    assert serve(program, path, 3, facts.min_T, 0, 1).returncode == 1


def test_the_least_T_of_many_short_completions(c_program: Callable[[str], Path], tmp_path: Path) -> None:
    """In this case, the size of the whole example determines T, not the longest row."""
    program, path = c_program("eval_rows"), tmp_path / "e.bin"
    for length in range(1, 12):
        facts = evals.write_eval(path, [Example([5], [[6] * length] * 4, 0)])
        assert serve(program, path, 4, facts.min_T, 0, 1).returncode == 0
        assert serve(program, path, 4, facts.min_T - 1, 0, 1).returncode == 1


# ------------------------------------------------------------------------------------------------------
# The command


def test_the_command(tok: pybpe.Tokenizer, jsonl: Callable[..., Path], tmp_path: Path) -> None:
    tok.save(tmp_path / "tok.json")
    path = jsonl(ROOF, BOAT)
    command, out = ("llmc", "eval", "-t", tmp_path / "tok.json"), tmp_path / "e.bin"
    result = pybpe_command(*command, path, "-o", out, "--json")
    facts = evals.eval_facts(out)
    assert json.loads(result.stdout) == {"output": str(out), "examples": 2, "min_T": facts.min_T, "min_B": 4}
    assert out.read_bytes() == written_out([oracle(tok, ROOF), oracle(tok, BOAT)])
    stdin = pybpe_command(*command, "-o", out, "--separator", "", "--force", stdin=path.read_text())
    assert f"2 examples; llm.c needs -b 4 or more and -t {evals.eval_facts(out).min_T} or more" in stdin.stdout
    assert evals.read_eval(out)[0].completions == oracle(tok, ROOF, "")[1]
    before = out.read_bytes()
    bad = pybpe_command(*command, "-o", out, stdin='{"context": "a"}', code=2)
    assert bad.stderr.count("\n") == 1 and "standard input: line 1: completions" in bad.stderr
    assert out.read_bytes() == before
