"""The public operations that write files, each small, on which faults are tried."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

from corpora import documents, jsonl, small_tokenizer  # noqa: E402

import pybpe  # noqa: E402
from llmc_compat import chat, checkpoint, convert, evals, workspace  # noqa: E402
from llmc_compat.checkpoint import GPT2Config  # noqa: E402
from llmc_compat.shards import write_shard  # noqa: E402
from pybpe import corpus, viz  # noqa: E402
from pybpe.corpus import cleaning  # noqa: E402
from pybpe.reading import planning  # noqa: E402
from pybpe.reading.pieces import Sample  # noqa: E402
from pybpe.support import executors  # noqa: E402
from pybpe.support.parallel import RunOptions  # noqa: E402
from pybpe.tokens.mix import mixing, shuffling  # noqa: E402
from pybpe.training import counting  # noqa: E402
from pybpe.training.counting import count_to_file  # noqa: E402

counting.LEAST_TASK, counting._TASKS_OF_GROUP = 3000, 1  # keeps counts often
executors._PATIENCE_SECONDS = 0.0
planning.TASK_BYTES = 6000
mixing.LEAST_MEMORY = 1
cleaning.DEFAULT_MEMORY = 1  # as many passes as possible
shuffling._PART_TOKENS = 2000

SPECIALS = [
    "<|endoftext|>", "<|padding|>", "<|im_start|>", "<|im_end|>", "<|system|>", "<|user|>", "<|assistant|>",
    "<|thought|>", "<|/thought|>",
]  # fmt: skip
CONFIG = GPT2Config(max_seq_len=64, vocab_size=300, num_layers=1, num_heads=2, channels=8, padded_vocab_size=384)


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        name: for messages.
        run: run(inputs, out) writes into the folder `out`, which may hold an older result.
        resumes: whether a run that dies leaves a hidden folder, from which the next resumes.
        several: whether its result is more than one file.
    """

    name: str
    run: Callable[[Path, Path], Any]
    resumes: bool = False
    several: bool = False


def make_inputs(folder: Path) -> None:
    """Writes the inputs of the operations."""
    folder.mkdir()
    (folder / "text.txt").write_text("<|endoftext|>".join(documents(24)), encoding="utf-8")
    (folder / "docs.jsonl").write_bytes(jsonl(documents(12)))
    pybpe.count_words(folder / "docs.jsonl").save(folder / "more.counts")
    (folder / "web.jsonl").write_bytes(_web())
    pybpe.binarize(
        small_tokenizer(), folder / "docs.jsonl", folder / "tokens", splits=(8, 2), min_shard_tokens=0, force=True,
        progress=False,
    )  # fmt: skip
    questions = [
        {"context": "One and one", "completions": ["is one", "is two", "is three", "is four"], "label": 1},
        {"context": "Two and two", "completions": ["is one", "is two", "is three", "is four"], "label": 3},
    ]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)))
    talk = [{"role": "user", "content": "How are you?"}, {"role": "assistant", "content": "Well, thank you."}]
    (folder / "talks.jsonl").write_text("\n".join(json.dumps({"messages": talk}) for _ in range(40)))
    for number, name in enumerate(["text.txt", "docs.jsonl"]):
        pybpe.binarize(small_tokenizer(), folder / name, folder / f"node{number}", splits=(1,), name="x")
    chat_tokenizer().save(folder / "chat.json")
    huggingface_tokenizer().save(folder / "hf.json")
    checkpoint.write_random_checkpoint(folder / "model.bin", CONFIG)


def chat_tokenizer() -> pybpe.Tokenizer:
    """Returns a small tokenizer with llm.c's control tokens."""
    return pybpe.train(iter(documents(8)), vocab_size=320, special_tokens=SPECIALS)


def huggingface_tokenizer() -> pybpe.Tokenizer:
    """Returns a tokenizer with as many tokens as CONFIG."""
    return pybpe.train(iter(documents(8)), vocab_size=CONFIG.vocab_size, special_tokens=SPECIALS[:1])


def plain() -> pybpe.Tokenizer:
    """Returns a tokenizer that every format can represent."""
    return _PLAIN


_PLAIN = pybpe.train(iter(documents(8)), vocab_size=400, special_tokens=["<|endoftext|>"], special_ids="last")


def _train(inputs: Path, out: Path) -> None:
    """Trains in two stages with a checkpoint and saves the tokenizer at the end, as the command line does."""
    tok = pybpe.train(
        [inputs / "text.txt", inputs / "docs.jsonl"], vocab_size=500, special_tokens=SPECIALS[:1], superwords=True,
        checkpoint=out / "training.checkpoint", progress=False, workers=1,
    )  # fmt: skip
    tok.save(out / "tok.json")


def _count_by_workers(inputs: Path, out: Path) -> None:
    """Counts on the workers of an executor, and adds."""
    settings, run = pybpe.Counts.from_dict({}).settings, RunOptions(None, _Here(), None, False)
    files = [str(inputs / name) for name in ("text.txt", "docs.jsonl")]
    count_to_file(files, settings, Sample(), run, out / "x.counts")
    pybpe.Counts.merge_files([out / "x.counts", inputs / "more.counts"], out / "sum.counts")


class _Here(Executor):
    """Runs tasks in this thread."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **keywords))
        except BaseException as error:
            future.set_exception(error)
        return future


def _binarize(format: str) -> Callable[[Path, Path], Any]:
    sizes = {"shard_tokens": 2500} if format in ("llmc", "npy") else {}

    def run(inputs: Path, out: Path) -> None:
        # By hash a split may be empty: the texts are Python's own, and differ between its versions.
        pybpe.binarize(
            small_tokenizer(), [inputs / "text.txt", inputs / "docs.jsonl"], out, format=format, **sizes,
            split_by="token", min_shard_tokens=100, workers=1, force=True, progress=False,
        )  # fmt: skip

    return run


def _binarize_skip(inputs: Path, out: Path) -> None:
    """Lists the records that it skips."""
    path = inputs / "bad.jsonl"
    if not path.exists():
        path.write_bytes((inputs / "docs.jsonl").read_bytes() + b"\n{\n7\n")
    pybpe.binarize(
        small_tokenizer(),
        path,
        out,
        splits=(1,),
        min_shard_tokens=0,
        on_error="skip",
        workers=1,
        force=True,
        progress=False,
    )


def _binarize_by_executor(inputs: Path, out: Path) -> None:
    pybpe.binarize(
        small_tokenizer(), [inputs / "text.txt", inputs / "docs.jsonl"], out, shard_tokens=2500, split_by="token",
        min_shard_tokens=100, executor=_Here(), workers=1, force=True, progress=False,
    )  # fmt: skip


def _clean(executor: Executor | None, name: str) -> Callable[[Path, Path], Any]:
    def run(inputs: Path, out: Path) -> None:
        corpus.clean(
            inputs / "web.jsonl", out / name, dedup="exact", near_dedup=0.7, dedup_paragraphs=True, on_error="skip",
            executor=executor, workers=1, force=True, progress=False,
        )  # fmt: skip

    return run


def _web() -> bytes:
    """Returns records with exact and near duplicates and repeated paragraphs; one record is not valid."""
    texts = [
        f"Text {number}, which has a number of its own:\n\n" + text[:150] for number, text in enumerate(documents(40))
    ]
    texts += [text + " And more" for text in texts[::4]] + texts[::10]
    return jsonl(texts) + b"\n{\n"


def _join(inputs: Path, out: Path) -> None:
    pybpe.join(small_tokenizer(), [inputs / "node0", inputs / "node1"], out, force=True, progress=False)


def _mix(inputs: Path, out: Path) -> None:
    sources = {
        "node0": {"data": str(inputs / "node0"), "epochs": 1.5},
        "node1": {"data": str(inputs / "node1"), "epochs": 0.5},
    }
    pybpe.mix(
        small_tokenizer(), {"sources": sources}, out, shard_tokens=2500, min_shard_tokens=100,
        sequence_length=64, memory_limit=60_000, force=True, progress=False,
    )  # fmt: skip


def _resize(inputs: Path, out: Path) -> None:
    old, new = pybpe.Tokenizer.from_file(inputs / "hf.json"), pybpe.Tokenizer.from_file(inputs / "chat.json")
    convert.resize_checkpoint(inputs / "model.bin", old, new, out / "resized.bin")


def _workspace(inputs: Path, out: Path) -> None:
    for name in ("README.md", "Makefile"):  # the workspace's get other names where these are somebody else's
        if (out / name).exists() and (out / name).read_bytes().endswith(b" old"):
            (out / name).unlink()
    workspace.make_workspace(
        [inputs / "text.txt"],
        out,
        vocab_size=400,
        layers=1,
        heads=2,
        channels=8,
        sequence_length=64,
        splits=(1, 1),
        workers=1,
        force=True,
        progress=False,
    )


OPERATIONS = [
    Operation("save", lambda inputs, out: plain().save(out / "tok.json")),
    Operation("save bin", lambda inputs, out: plain().save(out / "tok.bin")),
    Operation("export tiktoken", lambda inputs, out: plain().save(out / "tok.tiktoken")),
    Operation("export files", lambda inputs, out: plain().save(out / "files", "files"), several=True),
    Operation("save_pretrained", lambda inputs, out: plain().save_pretrained(out / "hf"), several=True),
    Operation("counts", lambda inputs, out: pybpe.count_words(inputs / "text.txt", workers=1).save(out / "x.counts")),
    Operation("counts by workers", _count_by_workers, several=True),
    Operation("train", _train, resumes=True),
    *(Operation(f"binarize {format}", _binarize(format), resumes=True, several=True)
      for format in ("llmc", "raw", "npy", "megatron")),
    Operation("binarize skip", _binarize_skip, resumes=True, several=True),
    Operation("binarize by executor", _binarize_by_executor, resumes=True, several=True),
    Operation("join", _join, resumes=True, several=True),
    Operation("mix", _mix, resumes=True, several=True),
    Operation("clean corpus", _clean(None, "clean.jsonl.gz"), resumes=True, several=True),
    Operation("clean corpus by workers", _clean(_Here(), "clean.jsonl"), resumes=True, several=True),
    Operation("write_shard", lambda inputs, out: write_shard(out / "x.bin", _ids())),
    Operation("checkpoint", lambda inputs, out: checkpoint.write_random_checkpoint(out / "m.bin", CONFIG)),
    Operation("checkpoint resize", _resize),
    Operation("checkpoint to-hf", lambda inputs, out: convert.checkpoint_to_huggingface(
        inputs / "model.bin", pybpe.Tokenizer.from_file(inputs / "hf.json"), out / "hf"), several=True),
    Operation("eval", lambda inputs, out: evals.write_eval(
        out / "e.bin", evals.encode_examples(plain(), inputs / "questions.jsonl"))),
    Operation("chat", lambda inputs, out: chat.write_chat(
        pybpe.Tokenizer.from_file(inputs / "chat.json"), [inputs / "talks.jsonl"], out, splits=(1,),
        min_shard_tokens=10, force=True), several=True),
    Operation("workspace", _workspace, resumes=True, several=True),
    Operation("viz", lambda inputs, out: viz.write_page(out / "page.html", "Hello, world", plain())),
]  # fmt: skip


def _ids() -> Any:
    import numpy

    return numpy.arange(3000, dtype=numpy.uint16)


def content(folder: Path) -> dict[str, bytes]:
    """Returns all files below a folder."""
    return {os.path.relpath(path, folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
