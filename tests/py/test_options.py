"""The options of the functions that write token files: one default and one rule for each, and the identity of a run."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from corpora import small_tokenizer

import pybpe
from llmc_compat.chat import write_chat
from llmc_compat.workspace import make_workspace
from pybpe.reading.options import ReadOptions
from pybpe.reading.splits import SplitOptions
from pybpe.support.run_options import RunOptions
from pybpe.tokens.options import ArrayOptions, DatasetOptions, OutputOptions

OPTIONS = (ReadOptions, SplitOptions, OutputOptions, RunOptions)
DEFAULTS = {field.name: field.default for options in OPTIONS for field in fields(options)}
OTHERS = {  # the defaults of one function
    pybpe.encode_files: {"eot": "keep"},
    write_chat: {"name": "chat", "min_shard_tokens": 257},
    make_workspace: {"dtype": "fp32"},
}


@pytest.mark.parametrize("function", [pybpe.binarize, pybpe.prepare, pybpe.encode_files, make_workspace, write_chat])
def test_functions_have_the_defaults_of_the_options(function: Callable[..., Any]) -> None:
    given = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    known = DEFAULTS | OTHERS.get(function, {})
    assert {name: value for name, value in given.items() if name in known} == {
        name: known[name] for name in given if name in known
    }


@pytest.mark.parametrize(
    "command", [["binarize", "-t", "tok"], ["prepare", "--vocab-size", "300"], ["llmc", "workspace"]]
)
def test_the_command_line_has_the_defaults_of_the_options(command: list[str]) -> None:
    from pybpe.cli import _parser

    given = vars(_parser().parse_args([*command, "corpus.txt", "-o", "out"]))
    known = DEFAULTS | ({"dtype": "fp32"} if command[0] == "llmc" else {})
    same = {name for name in given if name in known and name != "progress"}
    assert {name: given[name] for name in same} == {name: known[name] for name in same}
    needed = {field.name for options in OPTIONS[:3] for field in fields(options)}
    needed -= {"skipped", "on_error"} if command[0] == "llmc" else {"skipped"}  # they list them in the output folder
    needed -= {
        "prepare": {"dtype"},
        "llmc": {"format", "eot", "min_shard_tokens", "name"},
    }.get(command[0], set())
    assert needed <= same  # the command passes on the options that it has: a missing one would be lost


def test_a_run_that_an_earlier_version_began_is_recognized() -> None:
    """A run that resumes compares these settings, as text, so their names, order and types must stay."""
    options = DatasetOptions(ReadOptions(), SplitOptions(), OutputOptions()).for_tokenizer(small_tokenizer())
    assert repr(options.settings()) == (
        "{'format': 'llmc', 'splits': [8.0, 1.0, 1.0], 'split_by': 'hash', 'eot': 'prepend', 'dtype': 'uint16',"
        " 'shard_tokens': 100000000, 'min_shard_tokens': 257, 'documents': 'auto',"
        " 'text_key': 'text', 'encoding': None}"
    )
    array = ArrayOptions("raw", "keep", "auto", 1 << 62, 0)
    options = DatasetOptions(ReadOptions("content", "gbk", "line"), SplitOptions((1,), "token"), array)
    assert repr(options.for_tokenizer(small_tokenizer()).settings()) == (
        "{'format': 'raw', 'splits': [1.0], 'split_by': 'token', 'eot': 'keep', 'dtype': 'uint16',"
        f" 'shard_tokens': {1 << 62}, 'min_shard_tokens': 0, 'documents': 'line',"
        " 'text_key': 'content', 'encoding': 'gbk'}"
    )


def test_only_an_array_keeps_the_marks_of_the_text() -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="eot must be one of prepend, append, none, not 'keep'"):
        OutputOptions(eot="keep")
    with pytest.raises(pybpe.errors.ArgumentError, match="eot must be one of keep, prepend, append, none, not 'x'"):
        ArrayOptions(eot="x")


@pytest.mark.parametrize("name", ["shard_tokens", "min_shard_tokens", "format", "eot", "dtype", "name"])
def test_an_invalid_option_is_named(name: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=f"^{name} must be "):
        OutputOptions(**{name: "a/b"})  # type: ignore[arg-type]
    with pytest.raises(pybpe.errors.ArgumentError, match=f"^{name} must be "):
        pybpe.binarize(small_tokenizer(), "corpus.txt", "out", **{name: "a/b"})  # type: ignore[arg-type]
