"""Suggests a vocabulary size for a model: `pybpe.advise`.

One training run makes the largest vocabulary, and the smaller ones are its beginnings. Three estimates follow from
their compression of text that the run did not see. The answer is the middle one, but at least 8,000:

    cheapest   the size with which a byte of text takes the least compute: (parameters + embeddings) / (bytes per
               token) is the smallest
    power law  approach 2 of Tao et al., which does not depend on the text
    loss law   the size with the lowest loss by approach 3 of Tao et al. when every size gets the same compute. The law
               knows the tokens of English in the paper, so the bytes of text that the compute can read are converted to
               these.

For small models, all three estimates are far below 4,000, the smallest vocabulary that the paper's laws were fitted to.
Small models that we trained were best with 4,000 to 16,000: benchmarks/RESULTS.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, NamedTuple

from ..arguments import whole_number
from ..errors import ArgumentError
from ..model import special_ids_of
from ..pattern import Digits, Pattern, PatternLike
from ..reading.options import ReadOptions
from ..reading.paths import STDIN, Inputs, is_path_list, path_list
from ..reading.planning import pieces_of
from ..reading.text_encoding import Doubts
from ..tokenizer import Tokenizer
from ..trainer import train
from ..training.counting import corpus_plan, count_piece, files_to_count
from ..training.counts import Counts
from ..training.word_counter import CountSettings, WordCounter
from .measures import RARE
from .tables import Table
from .usage import measure, new_figure, save_figure

SIZES = tuple(step << k for k in range(8) for step in (1000, 1500))
MAX_BYTES = 200_000_000
_LEAST = 8_000  # the smallest answer: within a factor of 2 of the best size that we found, for each kind of model
_HELD_OUT = 10  # one part in so many is measured, not learned from
_FLAT = 0.005  # nats per token; losses that differ less are called equal


class AdvicePoint(NamedTuple):
    """One vocabulary size, for the same compute as the others."""

    vocab_size: int  # number of tokens
    bytes_per_token: float  # compression of the text that was held out
    embeddings: int  # parameters of the embeddings: vocab_size * channels. Input and output share them, as in GPT-2.
    tokens: float  # number of training tokens that the compute can pay for
    bytes: float  # the text that these tokens represent
    compute_per_byte: float  # floating-point operations of training per byte of text
    # the loss that the loss law predicts, in nats per token, less the entropy of the tokens' frequencies. See
    # Advice.is_in_range.
    loss: float
    frequent: float  # share of the tokens that occur 100 times or more in the training tokens


@dataclass(frozen=True)
class Advice:
    """The answer of `pybpe.advise`. print() shows it.

    Attributes:
        vocab_size: the suggested size.
        estimates: "cheapest", "power law" and "loss law" -> the size that each suggests.
        parameters, channels: the model: its parameters without embeddings, and its width.
        compute: floating-point operations of the training: 6 * parameters * tokens.
        points: the curve, by ascending size.
        reasons: five sentences.
    """

    vocab_size: int
    estimates: dict[str, int]
    parameters: int
    channels: int
    compute: float
    points: list[AdvicePoint]
    reasons: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain data."""
        without = {} if self.is_in_range else {"loss": None}
        return asdict(self) | {"points": [point._asdict() | without for point in self.points]}

    @property
    def is_in_range(self) -> bool:
        """Whether the loss law may predict losses here. Elsewhere its sizes may help, but its losses are meaningless: a
        loss above 0 is worse than the loss of a model which knows only the frequencies of the tokens."""
        return _predicts(self.points, self.parameters)

    def __str__(self) -> str:
        losses = ["loss"] if self.is_in_range else []
        table = Table("", ["vocabulary", "bytes/token", "embeddings", "text read", "FLOP/byte", *losses, ""])
        for p in self.points:
            sizes = (f"{p.vocab_size:,}", f"{p.bytes_per_token:.3f}", f"{p.embeddings:,}")
            loss = [f"{p.loss:.3f}"] if self.is_in_range else []
            mark = "<-" if p.vocab_size == self.vocab_size else ""
            table.add(*sizes, amount(p.bytes) + "B", amount(p.compute_per_byte), *loss, mark)
        return "\n".join([f"vocab_size {self.vocab_size:,}", *self.reasons, str(table)])


def amount(value: float) -> str:
    """Returns a number with three digits and a unit, such as 1.53G."""
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def plot(advice: Advice, path: str) -> None:
    """Draws the curve to a file, atomically: compute per byte and differences of predicted losses over the size."""
    figure, axes = new_figure()
    sizes = [point.vocab_size for point in advice.points]
    lines = axes.plot(sizes, [p.compute_per_byte / 1e6 for p in advice.points], marker="o", label="compute per byte")
    axes.set(xlabel="vocabulary", ylabel="MFLOP per byte of text", xscale="log", xticks=sizes)
    axes.set_xticks([], minor=True)
    axes.set_xticklabels([f"{size / 1000:g}k" for size in sizes], rotation=60)
    right = axes.twinx()
    losses = [point.loss - min(p.loss for p in advice.points) for point in advice.points]
    lines += right.plot(sizes, losses, marker="o", color="tab:orange", label="loss law (right)")
    right.set_ylabel("nats per token above the lowest loss")
    lines.append(axes.axvline(advice.vocab_size, linestyle="--", color="gray", label=f"{advice.vocab_size:,} tokens"))
    axes.legend(handles=lines)
    save_figure(figure, path)


def advise(
    inputs: Inputs,
    *,
    tokens: int,
    params: int | None = None,
    layers: int | None = None,
    channels: int | None = None,
    pattern: PatternLike = "gpt2",
    special_tokens: Sequence[str] = (),
    digits: Digits = None,
    normalizer: str | None = None,
    text_key: str = "text",
    encoding: str | None = None,
    max_bytes: int = MAX_BYTES,
    seed: int = 0,
    progress: bool | None = None,
) -> Advice:
    """Suggests the vocabulary size of a tokenizer for a GPT-2 that you plan to train.

    The suggestion rests on three estimates; docs/vocabularies.md explains them and says how far to trust them.

    Args:
        inputs: paths of text, as in `pybpe.train`.
        tokens: the number of tokens that you would train on. It sets the compute, 6 * parameters * tokens, which is
            then the same for all sizes: with large embeddings, it pays for fewer tokens.
        params: the parameters of the model without embeddings; or give layers and channels.
        layers, channels: the shape of the model. With `params`, channels can be left out: they are then 64 for each
            layer, as in llm.c.
        pattern, special_tokens, digits, normalizer, text_key, encoding: as in `pybpe.train`.
        max_bytes: read a sample of about this size.
        seed: random seed of the sample.
        progress: whether to show progress bars; None shows them on a terminal.

    Returns:
        The Advice.

    Raises:
        ArgumentError: the model is not described, or an argument is invalid; or the text is too short for 1,000 tokens.
        FileError, FormatError: as in `pybpe.train`.
    """
    model = _model(params, layers, channels)
    budget = 6.0 * model.parameters * whole_number("tokens", tokens, 1)
    specials = tuple(special_ids_of(special_tokens))
    settings = CountSettings(Pattern(pattern, digits), specials, normalizer, ReadOptions(text_key, encoding))
    learned, held = _split_counts(inputs, settings, whole_number("max_bytes", max_bytes, 1), seed)
    largest = max(2 * _LEAST, min(SIZES[-1], 2 * model.parameters // model.channels))
    tok = train(counts=learned, vocab_size=largest, special_tokens=specials, progress=progress)
    words = (held or learned).to_dict()
    points = [_point(tok, size, words, model, budget) for size in SIZES if size <= min(largest, tok.vocab_size)]
    if not points:
        raise ArgumentError(f"the text gives {tok.vocab_size} tokens, fewer than {SIZES[0]}: use more text")
    return _advice(points, model, budget, held is not None)


class _Model(NamedTuple):
    parameters: int
    channels: int


def _model(params: int | None, layers: int | None, channels: int | None) -> _Model:
    if (params is None) == (layers is None):
        raise ArgumentError("describe the model: give either params, or layers and channels")
    if channels is not None:
        channels = whole_number("channels", channels, 1, 1 << 20)
    if params is not None:
        size = whole_number("params", params, 1, 1 << 50)
        return _Model(size, channels or 64 * max(1, round((size / (12 * 64**2)) ** (1 / 3))))
    if channels is None:
        raise ArgumentError("layers needs channels: the parameters are 12 * layers * channels^2")
    return _Model(12 * whole_number("layers", layers, 1, 1 << 20) * channels**2, channels)


def _split_counts(inputs: Inputs, settings: CountSettings, most: int, seed: int) -> tuple[Counts, Counts | None]:
    """Counts a sample of a corpus: the text to learn from, and the text that is held out; None if the corpus cannot be
    divided."""
    if not is_path_list(inputs) or STDIN in path_list(inputs):
        raise ArgumentError("advise reads parts of files: pass paths, not texts or standard input")
    files = files_to_count(inputs, settings.read)
    total = files.known_size or most
    plan = corpus_plan(files, settings)
    cut = plan.cutting.cut
    parts = plan.shuffled(max(1 << 12, min(1 << 20, total // 100)), seed)
    counters = [WordCounter(settings, plan.kinds, workers=1) for _ in range(2)]
    held_out, doubts, size = len(parts) >= _HELD_OUT, Doubts(), 0
    for i, part in enumerate(parts):
        counter = counters[held_out and i % _HELD_OUT == _HELD_OUT - 1]
        for piece in pieces_of([plan.at_cuts(part)], plan.kinds, cut):
            found = count_piece(counter, doubts, piece)
            doubts.tell(found.doubt)
            size += found.size
        if size >= most and i >= _HELD_OUT:
            break
    learned, held = (Counts(counter.finish(), settings) for counter in counters)
    return learned, held if len(held) else None


def _point(tok: Tokenizer, size: int, words: Mapping[bytes, int], model: _Model, budget: float) -> AdvicePoint:
    usage = measure(tok.prune(vocab_size=size), words)
    embeddings = size * model.channels
    tokens = budget / (6 * (model.parameters + embeddings))
    text = tokens * usage.total.bytes_per_token
    scale = tokens / max(1, usage.total.tokens)
    return AdvicePoint(
        vocab_size=size,
        bytes_per_token=usage.total.bytes_per_token,
        embeddings=embeddings,
        tokens=tokens,
        bytes=text,
        compute_per_byte=budget / max(text, 1.0),
        loss=loss_law(model.parameters, embeddings, max(text, 1.0) * papers_tokens_per_character(size)),
        frequent=sum(count * scale >= RARE for count in usage.counts) / size,
    )


def _nearest(points: Sequence[AdvicePoint], size: float) -> AdvicePoint:
    return min(points, key=lambda point: abs(math.log(point.vocab_size / size)))


def _advice(points: list[AdvicePoint], model: _Model, budget: float, held_out: bool) -> Advice:
    estimates = {
        "cheapest": min(points, key=lambda point: point.compute_per_byte).vocab_size,
        "power law": round(power_law(*model)),
        "loss law": min(points, key=lambda point: point.loss).vocab_size,
    }
    best = _nearest(points, max(median(estimates.values()), _LEAST))
    return Advice(
        vocab_size=best.vocab_size,
        estimates=estimates,
        parameters=model.parameters,
        channels=model.channels,
        compute=budget,
        points=points,
        reasons=_reasons(points, best, estimates, model, held_out),
    )


def _reasons(
    points: Sequence[AdvicePoint], best: AdvicePoint, estimates: Mapping[str, int], model: _Model, held_out: bool
) -> list[str]:
    flat = [p.vocab_size for p in points if p.loss - min(q.loss for q in points) <= _FLAT]
    span = f" (nearly equal from {min(flat):,} to {max(flat):,})" if len(flat) > 1 else ""
    half, double = _nearest(points, best.vocab_size / 2), _nearest(points, best.vocab_size * 2)
    shares = ", ".join(
        f"{best.bytes_per_token / p.bytes_per_token - 1:+.1%} tokens with {p.vocab_size:,}"
        for p in (half, double)
        if p is not best
    )
    where = "text that was held out" if held_out else "the training text itself, because it cannot be divided"
    share = best.embeddings / (best.embeddings + model.parameters)
    return [
        f"Compression: {best.bytes_per_token:.2f} bytes per token of {where}; {shares or 'there is no other size'}.",
        f"Parameters: embeddings of {best.vocab_size:,} x {model.channels} are {amount(best.embeddings)}, next to"
        f" {amount(model.parameters)} others: {share:.0%} of the model.",
        f"Compute: the budget pays for {amount(best.tokens)} tokens, which are {amount(best.bytes)}B of text;"
        f" {best.frequent:.0%} of the vocabulary occurs {RARE} times or more in them.",
        f"Estimates: {estimates['cheapest']:,} takes the least compute per byte; the power law of Tao et al. gives"
        f" {estimates['power law']:,}, their loss law {estimates['loss law']:,}{span}. {_choice(points, estimates)}",
        _caution(points, estimates, model),
    ]


def _choice(points: Sequence[AdvicePoint], estimates: Mapping[str, int]) -> str:
    if median(estimates.values()) >= _LEAST:
        return "The answer is near the middle one."
    if points[-1].vocab_size < _LEAST:
        return f"The middle one is below {_LEAST:,}; this text gives no more than the answer."
    return f"The middle one is below {_LEAST:,}; small models were better with more tokens: see docs/vocabularies.md."


def _predicts(points: Sequence[AdvicePoint], parameters: int) -> bool:
    is_fitted = SMALLEST_MODEL <= parameters <= LARGEST_MODEL
    return is_fitted and max(point.loss for point in points) < 0


def _caution(points: Sequence[AdvicePoint], estimates: Mapping[str, int], model: _Model) -> str:
    doubts = []
    if not SMALLEST_MODEL <= model.parameters <= LARGEST_MODEL:
        doubts.append("the laws were fitted to models of 33M to 1.13G parameters, so here they extrapolate")
    if not _predicts(points, model.parameters):
        doubts.append("the loss law is outside its range, so its losses are not shown")
    if max(estimates.values()) > 4 * min(estimates.values()):
        doubts.append("the estimates differ by more than a factor of 4")
    if points[-1].vocab_size in estimates.values():
        doubts.append("an estimate is the largest size that was tried")
    doubt = "; ".join(doubts) or "the laws were fitted to English"
    return f"Caution: {doubt}. Train small models with two sizes to be sure."


# ----------------------------------------------------------------------------------------------------
# How large a vocabulary should be, after Tao et al. 2024, "Scaling Laws with Vocabulary" (arXiv 2407.13623).
#
# The paper trains models of 33 million to 1.13 billion parameters without embeddings, with vocabularies of 4,000 to
# 96,000 tokens, on English. The numbers below are from the authors' program, optimal_Nv_predict.py and utils.py in
# sail-sg/scaling-with-vocab. The compute of training is 6 * (parameters + embeddings) * tokens, where embeddings
# are one matrix: vocab_size * channels.

SMALLEST_MODEL, LARGEST_MODEL = 33_000_000, 1_130_000_000  # parameters without embeddings of the models in the paper


def power_law(parameters: float, channels: int) -> float:
    """Returns the vocabulary size of approach 2: the embeddings grow as parameters^0.84, from the best vocabulary of
    the smallest model."""
    return 3_145_728 * math.pow(parameters / SMALLEST_MODEL, 0.8353974035228025) / channels


def papers_tokens_per_character(vocab_size: float) -> float:
    """Returns the compression of the tokenizers of the paper."""
    log = math.log(min(vocab_size, 200_000))
    return 0.00639222 * log**2 - 0.15811069 * log + 1.20470122


def loss_law(parameters: float, embeddings: float, tokens: float) -> float:
    """Returns the loss of approach 3, in nats per token, less the entropy of the tokens' frequencies. The difference
    makes it comparable between vocabularies."""
    of_parameters = 1.8313851559554126 / math.pow(parameters / 1e6, 0.44660634152009615)
    of_embeddings = 0.19584238398665638 / math.pow(embeddings / 1e6, 0.6707374679896795)
    of_tokens = 2.1241123120064955 / math.pow(tokens / 1e9, 0.44660634152009615)
    return of_parameters + of_embeddings + of_tokens - 5.5327846803337435
