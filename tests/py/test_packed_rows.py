"""Packed rows: against a slow best fit, against the documents that went in, and through llm.c's loader."""

import multiprocessing
import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest
from corpora import EOT, content, documents, tokens_of
from killed import die_at
from reference.loader import DataLoader
from reference.packing import best_fit_spaces, fewest_rows, pieces, pieces_of_rows

import pybpe
from llmc_compat.batch import Batch
from llmc_compat.check import check
from llmc_compat.shards import read_shard
from pybpe.cli import main
from pybpe.loading import PackedSequences
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.pack import pieces as pieces_module
from pybpe.tokens.pack.best_fit import best_fit
from pybpe.tokens.pack.exact_fit import _fill, _Lengths, refit
from pybpe.tokens.pack.options import METHODS
from pybpe.tokens.pack.pieces import chunks, groups, place, shuffled
from pybpe.tokens.pack.rows import Rows, row_fault
from pybpe.tokens.statistics import dataset_statistics
from pybpe.tokens.token_files import TokenStream
from pybpe.tokens.verification import verify

MARK, PAD = 0, 1
T = 64


# ----------------------------------------------------------------------------------------------------
# Best fit


def rows_are_best_fit(lengths: Sequence[int], size: int) -> None:
    rows = best_fit(numpy.array(lengths, dtype=numpy.int64), size)
    used = numpy.bincount(rows, weights=lengths).astype(int) if len(lengths) else numpy.zeros(0, dtype=int)
    assert sorted((size - used).tolist()) == best_fit_spaces(lengths, size)


def test_random_lengths_fit_as_in_the_slow_version() -> None:
    rng = random.Random(1)
    for _ in range(300):
        size = rng.choice([1, 2, 3, 7, 8, 16, 33, 100])
        longest = rng.choice([size, -(-size // 2), -(-size // 5)])
        rows_are_best_fit([rng.randint(1, longest) for _ in range(rng.choice([0, 1, 2, 5, 40, 150]))], size)


@pytest.mark.parametrize("size", [1, 2, 3, 64, 100])
def test_equal_lengths_fit_as_in_the_slow_version(size: int) -> None:
    for length in {1, size // 2 or 1, size // 2 + 1 if size > 1 else 1, max(1, size - 1), size}:
        rows_are_best_fit([length] * 50, size)


def test_many_lengths_take_few_steps_each() -> None:
    lengths = numpy.array([1 + i * 7919 % 1024 for i in range(300_000)])
    rows = best_fit(lengths, 1024)
    assert numpy.bincount(rows, weights=lengths).max() <= 1024


def refitted(lengths: Sequence[int], size: int) -> int:
    """Returns the number of rows after best fit and refit, when they are right."""
    values = numpy.array(lengths, dtype=numpy.int64)
    before = best_fit(values, size)
    rows = refit(values, before, size)
    used = numpy.bincount(rows, weights=values).astype(int)
    assert used.max() <= size and used.min() > 0 and rows.max() <= before.max()
    assert rows.max() < before.max() or (rows == before).all()
    kept = numpy.bincount(before, weights=values)[before] == size
    if rows.max() < before.max():  # pieces of full rows are together as before
        assert len(set(zip(before[kept].tolist(), rows[kept].tolist()))) == len(set(before[kept].tolist()))
    return int(rows.max()) + 1


def test_refit_never_needs_more_rows_than_best_fit() -> None:
    rng = random.Random(4)
    for _ in range(400):
        size = rng.choice([1, 2, 3, 7, 16, 33, 100, 256])
        longest = rng.choice([size, -(-size // 2), -(-size // 5)])
        refitted([rng.randint(1, longest) for _ in range(rng.choice([1, 2, 5, 40, 300]))], size)


def test_refit_finds_the_fewest_rows_of_few_pieces() -> None:
    """Not always, since no fast method does, but more often than best fit."""
    rng = random.Random(5)
    best = fits = both = 0
    for _ in range(120):
        size = rng.choice([20, 50, 100])
        lengths = [rng.randint(size // 8, size // 2) for _ in range(11)]
        fewest, found = fewest_rows(lengths, size), refitted(lengths, size)
        assert found >= fewest
        fits += len(best_fit_spaces(lengths, size)) == fewest
        best += found == fewest
        both += 1
    assert fits < best <= both


@pytest.mark.parametrize(
    ("lengths", "size", "rows"),
    [([6, 4, 4, 3, 3], 10, 2), ([4, 3, 3, 4, 3, 3], 10, 2), ([5, 4, 4, 3, 2, 2], 10, 2)],
)
def test_two_and_three_pieces_fill_rows_exactly(lengths: list[int], size: int, rows: int) -> None:
    assert refitted(lengths, size) == rows


def nearest_pair(left: list[int], total: int) -> list[int]:
    """Returns two of these lengths with this total, as near to each other as there are."""
    pairs = [(a, total - a) for a in left if 0 < total - a <= a and (left.count(a) > 1 or a != total - a)]
    return list(min(((a, b) for a, b in pairs if b in left), default=()))


def exact(left: list[int], total: int) -> list[int]:
    """Returns one, two or three of these lengths with this total, in the order in which refit looks for them."""
    if total in left:
        return [total]
    found = nearest_pair(left, total)
    for first in sorted({length for length in left if length < total}, reverse=True)[:16]:
        rest = list(left)
        rest.remove(first)
        pair = nearest_pair(rest, total - first)
        found = found or ([first, *pair] if pair else [])
    return found


def test_lengths_that_are_left_are_found_as_in_the_slow_version() -> None:
    rng = random.Random(7)
    for _ in range(150):
        size = rng.choice([3, 8, 20, 60])
        left = [rng.randint(1, size) for _ in range(rng.choice([1, 4, 12, 30]))]
        lengths = _Lengths(left, size)
        for _ in range(8):
            number = rng.randint(1, size)
            fitting = [length for length in left if length <= number]
            if rng.random() < 0.3:
                expected, found = [max(fitting)] if fitting else [], lengths.longest(number)
            else:
                expected, found = exact(left, number), lengths.exactly(number)
            assert found == expected
            for length in found:
                left.remove(length)


def test_short_pieces_fill_rows_too() -> None:
    rng = random.Random(8)
    for _ in range(100):
        size = rng.choice([2, 5, 9])
        lengths = [rng.choice([1, 1, 2, rng.randint(1, size)]) for _ in range(rng.randint(1, 30))]
        used = numpy.bincount(_fill(lengths, size), weights=lengths)
        assert used.max() <= size and used.min() > 0 and sum(used) == sum(lengths)
        assert (used < size).sum() <= 1  # as long as there are pieces of one token, no other row has space


def test_the_size_of_groups_never_changes() -> None:
    """Packing that resumes with a later version must make the same groups."""
    assert (pieces_module._GROUP_TOKENS, pieces_module._GROUP_ROWS) == (1 << 23, 256)


def test_a_stream_must_begin_with_a_mark() -> None:
    with pytest.raises(pybpe.errors.FormatError, match="the first token is 5, not the mark 0"):
        next(groups(TokenStream(numpy.array([5, 0, 5])), MARK, 4))


def test_refit_is_as_good_with_many_pieces() -> None:
    """Short pieces that leave gaps after best fit: each row here is one of a few sums of three."""
    rng = random.Random(6)
    lengths = []
    for _ in range(300):
        a = rng.randint(60, 120)
        b = rng.randint(40, 190 - a)
        lengths += [a, b, 256 - a - b]
    before = len(best_fit_spaces(lengths, 256))
    assert refitted(lengths, 256) < before


# ----------------------------------------------------------------------------------------------------
# Rows of made-up documents: every token is different, so each is found again


def numbered(lengths: Sequence[int]) -> list[list[int]]:
    found, at = [], 2
    for length in lengths:
        found.append(list(range(at, at + length)))
        at += length
    return found


def packed(texts: list[list[int]], size: int, method: str) -> tuple[list[list[int]], int]:
    """Returns the rows, and the number of groups."""
    ids = numpy.array([i for text in texts for i in [MARK, *text]], dtype=numpy.uint32)
    rows: list[list[int]] = []
    number = -1
    for number, group in enumerate(groups(TokenStream(ids), MARK, size)):
        placed = shuffled(place(group.documents, size, method), 7, number)
        for _, some in chunks(placed, size, 0, 10**9):
            rows += Rows(group.ids, some, size, MARK, PAD).input_ids.tolist()
    return rows, number + 1


ADVERSARIAL = {
    "none": lambda size: [],
    "all are rows": lambda size: [size - 1] * 20,
    "all are one longer": lambda size: [size] * 20,
    "all are one shorter": lambda size: [max(1, size - 2)] * 20,
    "all of one token": lambda size: [1] * 100,
    "all are a little more than half": lambda size: [max(1, size // 2)] * 31,
    "one huge": lambda size: [3, 5000, 2],
    "two huge": lambda size: [2000, 2000],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("size", [2, 3, 8, 50])
def test_every_token_is_in_one_row_in_order(method: str, name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for group_tokens in (400, 1 << 20):
        monkeypatch.setattr(pieces_module, "_GROUP_TOKENS", group_tokens)
        monkeypatch.setattr(pieces_module, "_GROUP_ROWS", 4)
        rows_are_right(numbered(ADVERSARIAL[name](size)), size, method)


def test_random_documents_are_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_module, "_GROUP_ROWS", 3)
    rng = random.Random(2)
    for _ in range(150):
        monkeypatch.setattr(pieces_module, "_GROUP_TOKENS", rng.choice([1, 100, 1000]))
        size = rng.choice([2, 3, 5, 16, 40])
        lengths = [rng.choice([1, size - 1, size, rng.randint(1, 4 * size)]) for _ in range(rng.randint(0, 60))]
        rows_are_right(numbered(lengths), size, rng.choice(METHODS))


def rows_are_right(texts: list[list[int]], size: int, method: str) -> None:
    rows, number = packed(texts, size, method)
    assert all(len(row) == size for row in rows)
    found = sorted(pieces_of_rows(rows, MARK, PAD), key=lambda piece: piece[1])
    assert [i for piece in found for i in piece[1:]] == [i for text in texts for i in text]
    if method == "best-fit":
        assert found == pieces(texts, MARK, size)
    else:  # each row cuts one document at most; one row of a group is short, others lack one token
        of_documents = {text[0] for text in texts}
        cuts = sum(piece[1] not in of_documents for piece in found)
        long = sum(len(text) // (size - 1) for text in texts)
        assert cuts <= len(rows) + (long if method == "fill" else 0)
        assert sum(row.count(PAD) > 1 for row in rows) <= number
    if number == 1 and method == "best-fit":
        assert len(rows) <= len(best_fit_spaces([len(piece) for piece in pieces(texts, MARK, size)], size))


# ----------------------------------------------------------------------------------------------------
# Folders


@pytest.fixture(scope="module")
def data(tok: pybpe.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    texts = [*documents(300), "x", "Long. " * 400, "yes"]
    (folder / "corpus.txt").write_text(EOT.join(texts), encoding="utf-8")
    pybpe.binarize(tok, folder / "corpus.txt", folder / "data", shard_tokens=9000)
    return folder / "data"


def texts_of(ids: list[int], mark: int) -> list[list[int]]:
    found: list[list[int]] = []
    for i in ids:
        if i == mark:
            found.append([])
        else:
            found[-1].append(i)
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pad", [None, EOT])
def test_a_folder_is_packed(tok: pybpe.Tokenizer, data: Path, tmp_path: Path, method: str, pad: str | None) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, packing=method, pad=pad, shard_tokens=10_000)
    assert tok.eot_token is not None and made.packing is not None
    assert made.packing["pad"] == tok.special_tokens[pad or "<|pad|>"]
    source = Manifest.load(data)
    for split, shards in made.shards.items():
        assert len({shard.tokens for shard in shards}) == 1  # llm.c can resume
        rows = []
        for shard in shards:
            ids = read_shard(tmp_path / "a" / shard.file).tolist()
            assert row_fault([numpy.array(ids)], T, tok.eot_token) is None and ids[-1] == tok.eot_token
            rows += [ids[at : at + T] for at in range(0, len(ids) - 1, T)]
        expected = pieces(texts_of(tokens_of(data, split), tok.eot_token), tok.eot_token, T)
        found = pieces_of_rows(rows, tok.eot_token, made.packing["pad"])
        if method == "best-fit":
            assert sorted(found) == sorted(expected)
        facts = made.packing["splits"][split]
        assert facts["rows"] == len(rows) and facts["cuts"] == len(found) - source.split_documents(split)
        assert facts["padding"] == len(rows) * T - sum(map(len, found))
        assert made.split_documents(split) == source.split_documents(split)
    assert made.text_bytes == source.text_bytes
    assert verify(tmp_path / "a", tok)[1] == []
    assert sum(split.documents for split in dataset_statistics(tmp_path / "a").values()) == 303


@pytest.mark.parametrize("form", ["llmc", "npy"])
def test_a_split_without_documents_has_no_rows(tok: pybpe.Tokenizer, tmp_path: Path, form: str) -> None:
    text = _written(tmp_path / "a.txt", EOT.join(documents(20)))
    pybpe.binarize(tok, text, tmp_path / "data", splits=(1, 0, 1), min_shard_tokens=0)
    tok.save(tmp_path / "tok.json")
    words = ["--sequence-length", "16", "--format", form, "-o", str(tmp_path / "rows")]
    assert main(["pack", str(tmp_path / "data"), "-t", str(tmp_path / "tok.json"), *words]) == 0
    manifest = Manifest.load(tmp_path / "rows")
    assert manifest.packing is not None and manifest.packing["splits"]["val"] == {} and manifest.shards["val"] == []
    assert verify(tmp_path / "rows")[1] == []


def test_the_longest_part_in_the_statistics_is_a_row(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    pybpe.pack(tok, data, tmp_path / "a", sequence_length=T)
    assert dataset_statistics(tmp_path / "a")["train"].document_tokens[100] == T - 1


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("B", "world"), [(1, 1), (4, 1), (3, 2)])
def test_llmc_reads_whole_rows(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, shuffle: bool, B: int, world: int
) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, shard_tokens=10_000)
    shards = [read_shard(tmp_path / "a" / shard.file).tolist() for shard in made.shards["train"]]
    assert len(shards) > 1
    rows = {tuple(shard[at : at + T]) for shard in shards for at in range(0, len(shard) - 1, T)}
    for rank in range(world):
        loader = DataLoader(shards, B, T, rank, world, shuffle)
        for _ in range(2 * sum(map(len, shards)) // (B * T * world)):
            inputs, targets = loader.next()
            for at in range(0, B * T, T):
                assert tuple(inputs[at : at + T]) in rows
                assert targets[at + T - 1] == tok.eot_token


def test_the_same_call_gives_the_same_bytes(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        pybpe.pack(tok, data, tmp_path / name, sequence_length=T, seed=seed)
    before = content(tmp_path / "a")
    assert before == content(tmp_path / "b") != content(tmp_path / "c")
    pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, seed=3)  # finished already
    assert before == content(tmp_path / "a") and sorted(os.listdir(tmp_path)) == ["a", "b", "c"]


def test_a_killed_run_starts_again(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    pybpe.pack(tok, data, tmp_path / "whole", sequence_length=T, shard_tokens=10_000)

    def work(point: int) -> None:
        die_at(point)
        pybpe.pack(tok, data, tmp_path / "out", sequence_length=T, shard_tokens=10_000)

    for point in (0, 1, 3, 5, 6, 7, 8):
        process = multiprocessing.get_context("fork").Process(target=work, args=(point,))
        process.start()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        assert not (tmp_path / "out").exists() or content(tmp_path / "out") == content(tmp_path / "whole")
    pybpe.pack(tok, data, tmp_path / "out", sequence_length=T, shard_tokens=10_000)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert sorted(os.listdir(tmp_path)) == ["out", "whole"]


# ----------------------------------------------------------------------------------------------------
# Refusals, and what reads the result


def test_what_cannot_be_packed_is_refused(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    other = pybpe.train(iter(["other"]), vocab_size=300, special_tokens=[EOT])
    for wrong, message in (
        ({"sequence_length": 1}, "sequence_length"),
        ({"sequence_length": 64, "packing": "worst-fit"}, "packing"),
        ({"sequence_length": 64, "format": "raw"}, "format must be one of llmc, npy, parquet, webdataset"),
        ({"sequence_length": 64, "pad": "nothing"}, "pad"),
        ({"sequence_length": 64, "shard_tokens": 64}, "shard_tokens"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.pack(tok, data, out, **wrong)  # type: ignore[arg-type]
    with pytest.raises(pybpe.errors.ArgumentError, match="another tokenizer"):
        pybpe.pack(other, data, out, sequence_length=T)
    with pytest.raises(pybpe.errors.LimitError, match="2 GiB"):
        pybpe.pack(tok, data, out, sequence_length=T, shard_tokens=1 << 31)
    with pytest.raises(pybpe.errors.LimitError, match="tokens"):
        pybpe.pack(tok, _tiny(tok, tmp_path), out, sequence_length=T)
    for keywords, message in (({"eot": "append"}, "prepend"), ({"format": "npy"}, "llm.c's shards")):
        corpus = data.parent / "corpus.txt"
        pybpe.binarize(tok, corpus, tmp_path / message[:3], **keywords)  # type: ignore[arg-type]
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.pack(tok, tmp_path / message[:3], out, sequence_length=T)
    assert not out.exists()
    pybpe.pack(tok, data, out, sequence_length=T)
    with pytest.raises(pybpe.errors.ArgumentError, match="packed rows already"):
        pybpe.pack(tok, out, tmp_path / "again", sequence_length=T)
    with pytest.raises(pybpe.errors.ArgumentError, match="of other inputs, settings"):
        pybpe.pack(tok, data, out, sequence_length=32)


def _tiny(tok: pybpe.Tokenizer, folder: Path) -> Path:
    """A split whose tokens are enough for a shard; as rows they are padded, and remain enough only from 257 tokens."""
    pybpe.binarize(tok, _written(folder / "tiny.txt", "a b"), folder / "tiny", splits=(1,), min_shard_tokens=0)
    manifest = folder / "tiny" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"min_shard_tokens": 0', '"min_shard_tokens": 257'))
    return folder / "tiny"


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_documents_with_the_padding_token_are_refused(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    text = EOT.join(["<|pad|> in a text", *documents(30)])
    pybpe.binarize(tok, _written(tmp_path / "c.txt", text), tmp_path / "data", splits=(1,))
    with pytest.raises(pybpe.errors.ArgumentError, match="contain the padding token"):
        pybpe.pack(tok, tmp_path / "data", tmp_path / "out", sequence_length=T)
    pybpe.pack(tok, tmp_path / "data", tmp_path / "out", sequence_length=T, pad=EOT)
    assert verify(tmp_path / "out", tok)[1] == []


def test_data_that_differ_from_their_manifest_are_refused(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    pybpe.binarize(tok, _written(tmp_path / "c.txt", EOT.join(documents(30))), tmp_path / "data", splits=(1,))
    (shard,) = (tmp_path / "data").glob("*.bin")
    whole = shard.read_bytes()
    for damaged in (whole[:-2], whole[:1026] + whole[1024:1026] + whole[1028:]):  # truncated; a second mark
        shard.write_bytes(damaged)
        with pytest.raises(pybpe.errors.FormatError, match="manifest"):
            pybpe.pack(tok, tmp_path / "data", tmp_path / "out", sequence_length=T)
    assert not (tmp_path / "out").exists()


def test_check_refuses_another_T(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T // 2)
    assert not [each for each in check([tmp_path / "a"], Batch(4, T // 2))[1] if "rows" in str(each)]
    (finding,) = [each for each in check([tmp_path / "a"], Batch(4, T))[1] if "rows" in str(each)]
    assert finding.is_error and "rows of 32 tokens were packed, but T is 64" in finding.fault
    (finding,) = [each for each in check([tmp_path / "a"])[1] if "rows" in str(each)]
    assert not finding.is_error
    path = tmp_path / "a" / made.shards["train"][0].file
    ids = read_shard(path)
    path.write_bytes(path.read_bytes()[:1024] + numpy.roll(ids, 1).tobytes())
    assert any("begins a row" in str(each) for each in check([tmp_path / "a"], Batch(4, T // 2))[1])


def test_the_windows_of_several_shards_are_their_rows(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, shard_tokens=10_000)
    shards = [read_shard(tmp_path / "a" / shard.file).tolist() for shard in made.shards["train"]]
    expected = [shard[at : at + T + 1] for shard in shards for at in range(0, len(shard) - 1, T)]
    windows = PackedSequences(tmp_path / "a" / "*_train_*.bin", T, eot_id=tok.eot_token, eot="prepend")
    assert len(shards) > 1 and len(windows) == len(expected)
    assert [[*x.tolist(), int(y[-1])] for x, y in windows] == expected
    assert windows[-1].inputs.tolist() == expected[-1][:-1]
    assert [windows.cu_seqlens(i)[0] for i in range(3)] == [0, 0, 0]
    assert {len(window.inputs) for window in PackedSequences(windows.stream.paths, T, drop_last=False)} == {T}


def test_windows_that_are_not_rows_are_refused(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, shard_tokens=10_000)
    first = tmp_path / "a" / made.shards["train"][0].file
    for path, length, stride in ((tmp_path / "a" / "*_train_*.bin", T, 1), (first, T // 2, None), (first, T // 2, T)):
        with pytest.raises(pybpe.errors.ArgumentError, match="packed rows of 64"):
            PackedSequences(path, length, stride)
    with pytest.raises(pybpe.errors.ArgumentError, match="the manifest says eot='prepend', not 'append'"):
        PackedSequences(first, T, eot="append")
    with pytest.raises(pybpe.errors.ArgumentError, match="has no packed rows, but another of the files does"):
        PackedSequences([first, next(data.glob("*_val_*.bin"))], T)
    ids = read_shard(first)
    first.write_bytes(
        numpy.array([20240520, 1, len(ids) - 1], dtype="<i4").tobytes().ljust(1024, b"\0") + ids[:-1].tobytes()
    )
    with pytest.raises(pybpe.errors.FormatError, match="are not rows of 64 and one more"):
        PackedSequences(first, T)


def test_the_command_line_packs(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tok.save(tmp_path / "tok.json")
    args = ["-t", str(tmp_path / "tok.json"), "-o", str(tmp_path / "out"), "--packing", "fill", "--seed", "3"]
    assert main(["pack", str(data), "--sequence-length", str(T), *args]) == 0
    assert "padding" in capsys.readouterr().out
    pybpe.pack(tok, data, tmp_path / "same", sequence_length=T, packing="fill", seed=3)
    assert content(tmp_path / "out") == content(tmp_path / "same")


def test_a_manifest_with_invalid_packing_is_refused(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    pybpe.pack(tok, data, tmp_path / "a", sequence_length=T)
    manifest = tmp_path / "a" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"pad": ', '"pad": -'))
    with pytest.raises(pybpe.errors.FormatError, match="packing"):
        Manifest.load(tmp_path / "a")
