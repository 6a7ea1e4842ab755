"""The rules of `check`: faults, their effects on llm.c, and remedies. Effects on the CPU were observed by running llm.c
(tests/llmc_verdicts.py). Effects on CUDA are from its source: docs/llmc-check.md has the lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from types import SimpleNamespace
from typing import NamedTuple

from pybpe import _binding
from pybpe.model import END_OF_TEXT
from pybpe.reading.streams import file_sha256

from .evals import COMPLETIONS

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Fault:
    """One fault."""

    file: str  # where it is
    fault: str  # the problem
    effect: str  # the effect on llm.c, such as "aborts"
    remedy: str  # how to fix it
    severity: str = ERROR  # "error" if llm.c aborts or trains on nonsense. "warning" if it works, but not as expected

    def __str__(self) -> str:
        mark = "" if self.is_error else "warning: "
        return f"{self.file}: {mark}{self.fault}; llm.c {self.effect}; {self.remedy}"

    @property
    def is_error(self) -> bool:
        """Whether llm.c aborts or trains on nonsense."""
        return self.severity == ERROR

    def unless(self, harmless: object) -> Fault:
        """Returns the finding, downgraded to a warning if it is harmless here."""
        return replace(self, severity=WARNING) if harmless else self

    @classmethod
    def of_error(cls, file: str, error: Exception, remedy: str, effect: str = "aborts") -> Fault:
        """Returns the finding for a file that cannot be read. The error's message may name the effect on llm.c."""
        fault, _, said = str(error).removeprefix(f"{file}: ").partition("; llm.c ")
        return cls(file, fault, said or effect, remedy)


BROKEN_LINK = "a broken link"
GPT2_TOKENS = 50257
HUGE = 1e4  # the weights of a trained GPT-2 are below 100
CUDA = "cuda"  # an error, or a warning if the CPU trainer may use the file
_SAMPLE_T = 63  # genT - 1: the number of positions gpt2_forward computes for a sample, in steps of T

# The remedies for files that cannot be read, and their effects on llm.c
TOKENIZER_DAMAGED = ("write it again with Tokenizer.save or `pybpe export`", "aborts, or prints 'invalid token id'")
MODEL_DAMAGED = (
    "write it again with `pybpe llmc workspace` or `pybpe llmc checkpoint`",
    "aborts, crashes, runs out of memory or trains on nonsense",
)
SHARD_DAMAGED = ("write it again with `pybpe binarize`", "aborts")
EVAL_DAMAGED = ("write it again with `pybpe llmc eval`", "aborts")
MASK_DAMAGED = ("write it again with `pybpe llmc chat`", "does not read this file, but programs that read it fail")
MANIFEST_DAMAGED = (
    "write the shards again, with the command that wrote them",
    "does not read it, but without it, nobody can tell whether the shards next to it have changed",
)
_OTHER_MODEL = (
    "for this tokenizer, `pybpe llmc checkpoint new -t TOK -o MODEL` makes a model, and `pybpe llmc checkpoint convert"
    " MODEL --from OLD --to TOK -o NEW` converts one"
)
_EARLIER = "use an earlier checkpoint"
_COPY = "copy the tokenizer.bin that was written with the shards"
_PLACE = "is {there}, but llm.c expects {expected} under this name"
_ELSEWHERE = "move it elsewhere"
_AS_IT_IS = "trains on the file as it is"
_INSIDE = "trains on sequences that begin inside rows"
_UNALIGNED = "reads unaligned rows on CUDA, and aborts"


class Rule(NamedTuple):
    """A fault of the subjects whose facts make `when` true. Its strings name facts: "{V}"."""

    when: Callable[[SimpleNamespace], object]
    fault: str
    effect: str
    remedy: str
    severity: str = ERROR


def faults(kind: str, path: str, **facts: object) -> Iterator[Fault]:
    """Yields the faults of a subject: a file, files together, a name that llm.c opens, a folder. With the fact
    `harmless`, they are warnings."""
    s = SimpleNamespace(path=path, **facts)
    for rule in RULES[kind]:
        if rule.when(s):
            is_warning = rule.severity == WARNING or (rule.severity == CUDA and s.for_cpu) or facts.get("harmless")
            yield Fault(path, *(text.format_map(vars(s)) for text in rule[1:4])).unless(is_warning)


def _always(_: SimpleNamespace) -> bool:
    return True


RULES: dict[str, list[Rule]] = {
    # tokenizer_init in llmc/tokenizer.h
    "tokenizer": [
        Rule(lambda s: s.version == 1 and s.V != GPT2_TOKENS, "version 1 with {V} tokens",
            f"aborts, because it assumes {GPT2_TOKENS}", "save it as version 2"),
        Rule(lambda s: s.version == 2 and s.end is None, "the end-of-text id is {eot}, but there are only {V} tokens",
            "aborts when it starts a sample from it, unless the model has this id",
            f"train the tokenizer with the special token {END_OF_TEXT}"),
        Rule(lambda s: not s.is_ours and s.end not in (None, END_OF_TEXT) and END_OF_TEXT.encode() in s.tokens,
            f"the end-of-text id is {{eot}}, which is {{end!r}}, not {END_OF_TEXT}",
            "starts its samples from that token", TOKENIZER_DAMAGED[0], WARNING),
        Rule(lambda s: s.is_ours and s.damage, "{damage}", "still reads its tokens, and prints samples with them",
            "save it again with pybpe"),
    ],
    "tokenizer and train shards": [
        Rule(lambda s: s.end is not None and s.shards and not any(s.eot in shard["present"] for shard in s.shards),
            "the end-of-text id is {eot}, which no train shard contains",
            "starts its samples from a token that it never saw in training",
            "encode the text with `pybpe binarize --eot prepend`", WARNING),
    ],
    "tokenizer and manifest": [
        # Without merges and pattern after the tokens, the fingerprint is not the whole tokenizer's
        Rule(lambda s: s.is_ours and s.fingerprint is not None and s.wanted not in (None, s.fingerprint),
            "is not the tokenizer that encoded the shards of {manifest}",
            "trains, but decodes its samples to wrong text", _COPY),
    ],
    "unknown tokenizer": [
        Rule(_always, "no manifest says which tokenizer encoded the shards in this folder",
            "trains on any ids below V, and prints samples as wrong text if {tokenizer} is another one",
            "keep the manifest.json that pybpe writes next to shards", WARNING),
    ],
    # dataloader_load_shard_ and dataloader_load_batch in llmc/dataloader.h
    "shard": [
        Rule(lambda s: s.id_bytes != 2, "uint32 tokens",
            "aborts with 'Bad magic' (only its train_llama3.py reads uint32)",
            "use a vocabulary of at most 65536 tokens, and dtype uint16"),
        Rule(lambda s: s.size > _binding.SHARD_MAX_BYTES, "{size} bytes",
            "aborts at the first batch beyond 2 GiB, because it seeks with a 32-bit int",
            "write smaller shards: `pybpe binarize --shard-tokens`"),
        Rule(lambda s: s.tokens < s.batch.min_tokens and (s.split != "test" or not s.tokens),  # it never opens test
            "{tokens} tokens, but {needs} are needed", "aborts", "{fit}"),
        Rule(lambda s: s.tokens > 1 and s.lowest == s.highest, "all {tokens} tokens are the id {lowest}",
            "trains on this id alone, which is nonsense", SHARD_DAMAGED[0]),
    ],
    "ids and tokenizer": [  # both trainers check every batch
        Rule(lambda s: s.id >= s.V, "has the id {id}, but {other} has {V} tokens: they do not belong together",
            "cannot decode it", "encode the text with this tokenizer"),
    ],
    "ids and model": [
        Rule(lambda s: s.id >= s.V > 0, "has the id {id}, but {other} has V {V}", "aborts at the batch with this id",
            _OTHER_MODEL),
    ],
    "shard of a manifest": [
        Rule(lambda s: not s.exists, "is missing, but {manifest} lists it",
            "trains on the others alone, or aborts if there is none", MANIFEST_DAMAGED[0]),
        Rule(lambda s: s.found not in (None, s.tokens), "{found} tokens, but {manifest} says {tokens}", _AS_IT_IS,
            MANIFEST_DAMAGED[0]),
        Rule(lambda s: s.found == s.tokens and file_sha256(s.path) != s.sha256,
            "its SHA-256 is not the one in {manifest}: its tokens have changed", _AS_IT_IS, MANIFEST_DAMAGED[0]),
    ],
    "rows and T": [
        Rule(lambda s: s.size != s.T, "rows of {size} tokens were packed, but T is {T}", _INSIDE,
            "train with -t {size}, or pack again with `pybpe pack --sequence-length {T}`"),
    ],
    "rows": [Rule(lambda s: s.wrong, "{wrong}", _INSIDE, "run `pybpe pack` again")],
    "beside shards": [
        Rule(lambda s: s.there not in ("a token shard", BROKEN_LINK, None),
            "is {there}, but the shards' pattern {pattern} matches it", "aborts with -i or -j '{pattern}'", _ELSEWHERE),
        Rule(lambda s: s.there == "a token shard" and s.manifest, "is not one of the shards that {manifest} lists",
            "trains on it too", _ELSEWHERE),
    ],
    # gpt2_build_from_checkpoint in train_gpt2.c and train_gpt2.cu, which trusts every size in the header
    "model": [
        Rule(lambda s: s.dtype != s.expected, "is {dtype}, but llm.c expects {expected} under this name",
            "aborts: 'Bad version', or 'Precision is configured as'",
            "write it with `pybpe llmc checkpoint new --dtype {expected}`, or rename it and pass it with -e"),
        Rule(lambda s: s.T > s.maxT, "maxT is {maxT}, but T is {T}",
            "reads the wrong weights as position embeddings on the CPU and trains on nonsense, and aborts on CUDA",
            "use -t {maxT}, or make a model for longer sequences"),
        Rule(lambda s: not s.most, "all weights are zero", "trains on nonsense: its loss never changes", _EARLIER),
        Rule(lambda s: s.most == inf, "has Inf or NaN in {where}",
            "computes a loss of nan or inf: aborts on the CPU, or trains on nonsense", _EARLIER),
        Rule(lambda s: HUGE < s.most < inf, "has weights up to {most:.0e} in {where}; GPT-2 has them below 100",
            "trains on nonsense or aborts, because its loss may become inf or nan", _EARLIER),
        # Only CUDA: fused_classifier.cuh leaves the gradients of padding. Kernels load 16 bytes at once
        Rule(lambda s: s.padding, "rows {V} to {Vp} of wte are not zero",
            "uses their logits as gradients on CUDA, so that the gradient norm explodes",
            "`pybpe llmc checkpoint convert` zeroes them", CUDA),
        Rule(lambda s: s.C % s.step, "C is {C}, not a multiple of {step}", _UNALIGNED,
            "make a model with other channels", CUDA),
        Rule(lambda s: s.Vp % s.step, "Vp is {Vp}, not a multiple of {step}", _UNALIGNED,
            "`pybpe llmc checkpoint convert --pad-vocab 128` makes it one", CUDA),
        # Only with -b or -t: softmax_forward_kernel5 in attention.cuh, gelu_forward in gelu.cuh
        Rule(lambda s: s.given and s.T % 4, "T is {T}, not a multiple of 4", "aborts on CUDA without cuDNN",
            "use another -t"),
        Rule(lambda s: s.given and s.B * s.T * 4 * s.C % s.block,
            "4 x B {B} x T {T} x C {C} is not a multiple of {block}", "aborts on CUDA in gelu_forward",
            "use another -b or -t"),
        Rule(lambda s: s.given and s.T < _SAMPLE_T, f"T is {{T}}, but samples have {_SAMPLE_T + 1} tokens",
            "aborts on CUDA when it samples", "use -t 64 or more, a small -g, or -s 0"),
    ],
    "model and tokenizer": [
        Rule(lambda s: s.V > s.tokens, "V is {V}, but {other} has {tokens} tokens",
            "samples ids that the tokenizer lacks: 'invalid token id'", _OTHER_MODEL),
        Rule(lambda s: 0 < s.V < s.tokens, "V is {V}, but {other} has {tokens} tokens",
            "aborts at the first id that the model lacks", _OTHER_MODEL),
    ],
    # On CUDA, with -h 1 EvalLoader in llmc/dataloader.h, with -y 1 find_max_step in llmc/utils.h, and load_state
    "eval": [
        Rule(lambda s: s.B < COMPLETIONS, f"B is {{B}}, but an example takes {COMPLETIONS} rows", "aborts with -h 1",
            f"use -b {COMPLETIONS} or more, or -h 0"),
        Rule(lambda s: s.T < s.min_T, "its longest example needs T {min_T}, but T is {T}", "aborts with -h 1",
            "use -t {min_T} or more, leave long examples out, or -h 0"),
        Rule(lambda s: s.examples < s.n or s.each * (s.n - 1) > s.examples,
            "{examples} examples, {each} per process, leave none for the last of {n} processes",
            "reads past the end and aborts with -h 1", "use fewer processes, other examples, or -h 0"),
    ],
    # Names that are compiled into the trainers
    "place": [
        Rule(lambda s: s.there == "not a regular file", _PLACE, "waits forever, or aborts", "put {expected} there"),
        Rule(lambda s: s.there != "not a regular file", _PLACE, "aborts{when}", "put {expected} there"),
    ],
    "same data": [
        Rule(_always, "is the same as {train}", "validates on its training data, so the validation loss means nothing",
            "put a shard of the val split there"),
    ],
    "data of a split": [
        Rule(lambda s: s.of not in (None, s.split), "leads to a shard of the {of} split",
            "{verb} on text that was set apart as {of}", "put a shard of the {split} split there"),
    ],
    "no tokenizer": [
        Rule(_always, "is missing", "starts its samples from a random id and prints ids instead of text, or aborts",
            _COPY),
    ],
    "no data": [
        Rule(_always, "is missing", "aborts on the CPU, and on CUDA unless -i and -j name other shards",
            "link a shard there"),
    ],
    "no model": [
        Rule(_always, "is missing", "aborts, unless it is the CUDA trainer with -e {other}", "{remedy}"),
    ],
    "no model for the tokenizer": [  # llm.c can make a model itself only for GPT-2's tokens: -e d12
        Rule(_always, "there is no checkpoint for the {V} tokens of {tokenizer}",
            "aborts on the CPU, and cannot learn V any other way on CUDA",
            "`pybpe llmc checkpoint new -t {tokenizer} -o {model}`"),
    ],
}  # fmt: skip
