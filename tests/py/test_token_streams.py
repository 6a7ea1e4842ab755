"""Token files as one stream, its windows, and documents in them: compared with tables made by hand, and with slices of
a list."""

import json
import os
import pickle
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pybpe
from llmc_compat.shards import write_shard
from pybpe.loading import PackedSequences, documents
from pybpe.tokens.token_files import TokenFile, TokenStream

LETTERS = "abcdefghij"


def letters(ids: numpy.ndarray) -> str:
    return "".join(LETTERS[i] for i in ids)


def windows(count: int, *args: int, **kwargs: object) -> list[tuple[str, str]]:
    packed = PackedSequences(numpy.arange(count), *args, **kwargs)  # type: ignore[arg-type]
    assert len(packed) == len(list(packed))
    return [(letters(inputs), letters(targets)) for inputs, targets in packed]


# ----------------------------------------------------------------------------------------------------
# Windows


@given(st.integers(0, 60), st.integers(1, 12), st.integers(1, 15) | st.none(), st.booleans())
def test_windows_are_those_of_a_loop(count: int, length: int, stride: int | None, drop_last: bool) -> None:
    """Those of the loop in sliding-window tutorials, and a shorter one if otherwise the last token were no target."""
    expected: list[tuple[list[int], list[int]]] = []
    for start in range(0, count - 1, stride or length):
        ids = list(range(start, min(start + length + 1, count)))
        if len(ids) == length + 1 or not drop_last:
            expected.append((ids[:-1], ids[1:]))
        if ids[-1] == count - 1:
            break
    packed = PackedSequences(numpy.arange(count), length, stride, drop_last)
    assert [(x.tolist(), y.tolist()) for x, y in packed] == expected and len(packed) == len(expected)


def test_indices() -> None:
    packed = PackedSequences(numpy.arange(8), 3)
    assert packed[-1].inputs.tolist() == packed[numpy.int64(1)].inputs.tolist() == [3, 4, 5]
    for index in (2, -3):
        with pytest.raises(IndexError, match="there are 2"):
            packed[index]


@pytest.mark.parametrize("arguments", [(0,), (-1,), (3, 0), (2.5,), ("3",)])
def test_lengths_below_one_are_refused(arguments: tuple) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="sequence_length|stride"):
        PackedSequences(numpy.arange(8), *arguments)


# ----------------------------------------------------------------------------------------------------
# Documents

E = 0  # <|endoftext|>

DOCUMENTS = [
    # ids, eot, document_ids, position_ids, cu_seqlens
    ([5, 6, E, 7, E, 8, 9], "append", [0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 0, 1], [0, 3, 5, 7]),
    ([E, 5, 6, E, 7, E, 8], "prepend", [0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 0, 1], [0, 3, 5, 7]),
    ([5, 6, E, 7], "append", [0, 0, 0, 1], [0, 1, 2, 0], [0, 3, 4]),
    ([5, 6, E, 7], "prepend", [0, 0, 1, 1], [0, 1, 0, 1], [0, 2, 4]),
    ([5, 6, E], "append", [0, 0, 0], [0, 1, 2], [0, 3]),
    ([5, 6, E], "prepend", [0, 0, 1], [0, 1, 0], [0, 2, 3]),
    ([E, E, 5], "append", [0, 1, 2], [0, 0, 0], [0, 1, 2, 3]),
    ([E, E, 5], "prepend", [0, 1, 1], [0, 0, 1], [0, 1, 3]),
    ([5, 6], "append", [0, 0], [0, 1], [0, 2]),
]  # fmt: skip


@pytest.mark.parametrize("ids, eot, expected, positions, lengths", DOCUMENTS)
def test_documents_by_hand(ids: list, eot: str, expected: list, positions: list, lengths: list) -> None:
    packed = PackedSequences(numpy.array([*ids, 99]), len(ids), eot_id=E, eot=eot)
    found = [packed.document_ids(0), packed.position_ids(0), packed.cu_seqlens(0)]
    assert [array.tolist() for array in found] == [expected, positions, lengths]
    assert {array.dtype for array in found} == {numpy.dtype(numpy.int32)}


def test_mask_by_hand() -> None:
    mask = PackedSequences(numpy.array([5, 6, E, 7, E, 8]), 5, eot_id=E).attention_mask(0)
    assert mask.dtype == bool
    assert mask.astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 1, 1],
    ]


def test_batches_are_rows() -> None:
    batch = numpy.random.default_rng(1).integers(0, 4, (6, 20))
    for eot in ("append", "prepend"):
        found = documents.document_ids(batch, E, eot)
        rows = [documents.document_ids(row, E, eot) for row in batch]
        assert (found == numpy.stack(rows)).all()
        assert (documents.position_ids(found) == numpy.stack([documents.position_ids(row) for row in rows])).all()
        assert (documents.causal_mask(found) == numpy.stack([documents.causal_mask(row) for row in rows])).all()
        lengths = numpy.concatenate([numpy.diff(documents.cu_seqlens(row)) for row in rows])
        assert documents.cu_seqlens(found).tolist() == [0, *numpy.cumsum(lengths).tolist()]


def test_documents_need_the_id_and_a_place_of_endoftext() -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="eot_id"):
        PackedSequences(numpy.arange(8), 3).document_ids(0)
    with pytest.raises(pybpe.errors.ArgumentError, match="'none'"):
        PackedSequences(numpy.arange(8), 3, eot_id=0, eot="none").document_ids(0)


# ----------------------------------------------------------------------------------------------------
# Files


def write_tokens(folder: Path, name: str, ids: numpy.ndarray) -> Path:
    path = folder / name
    if name.endswith(".npy"):
        numpy.save(path, ids)
    elif name.startswith("raw"):
        ids.tofile(path)
    else:
        write_shard(path, ids)
    return path


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("name", ["shard.bin", "raw.bin", "array.npy"])
def test_every_kind_of_file(tmp_path: Path, name: str, dtype: str) -> None:
    ids = numpy.arange(60_000, 60_010).astype(dtype)
    path = write_tokens(tmp_path, name, ids)
    found = TokenFile(path, dtype).read()
    assert found.dtype == dtype and found.tolist() == ids.tolist()
    assert not found.flags.writeable
    packed = PackedSequences(path, 4, dtype=dtype)
    assert [window.inputs.tolist() for window in packed] == [ids[0:4].tolist(), ids[4:8].tolist()]
    inputs, targets = packed[1]  # as PyTorch needs them
    assert inputs.dtype == targets.dtype == numpy.int64 and inputs.flags.writeable and targets.flags.writeable
    assert not numpy.shares_memory(inputs, targets)
    assert packed.ids(1).dtype == dtype and not packed.ids(1).flags.writeable


@pytest.mark.parametrize("ids", [numpy.array([0, 1, 2, -3]), numpy.array([0, 1, 2, 2**64 - 3], dtype=numpy.uint64)])
def test_what_is_no_id_is_refused(ids: numpy.ndarray) -> None:
    with pytest.raises(pybpe.errors.FormatError, match=r"token 3 is negative or above 2\^63 - 1"):
        PackedSequences(ids, 3)[0]
    assert PackedSequences(ids, 2)[0].targets.tolist() == [1, 2]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.integers(1, 9), st.integers(1, 9))
def test_several_files_are_one(tmp_path_factory: pytest.TempPathFactory, sizes: list, length: int, stride: int) -> None:
    folder = tmp_path_factory.mktemp("files")
    ids = numpy.arange(sum(sizes), dtype=numpy.uint16)
    for i, part in enumerate(numpy.split(ids, numpy.cumsum(sizes)[:-1])):
        write_tokens(folder, f"{('shard', 'raw')[i % 2]}_{i:06d}.{('bin', 'npy')[i % 3 == 2]}", part)
    paths = sorted(folder.iterdir(), key=lambda path: path.stem[-6:])
    expected = [window.inputs.tolist() for window in PackedSequences(ids, length, stride, False)]
    packed = PackedSequences(paths, length, stride, False)
    assert [window.inputs.tolist() for window in packed] == expected
    assert [window.targets.tolist() for window in packed] == [[i + 1 for i in inputs] for inputs in expected]
    pickled = pickle.dumps(packed)
    assert len(pickled) < 2000  # paths, not tokens
    again = pickle.loads(pickled)
    assert [window.inputs.tolist() for window in again] == expected


def test_binarized_files_say_what_they_hold(tmp_path: Path) -> None:
    """If a file has no header, the manifest says whether it is uint32 or uint16."""
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<|endoftext|>"])
    (tmp_path / "a.txt").write_text("Hello!<|endoftext|>How are you?")
    pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", format="raw", splits=(1,), dtype="uint32")
    packed = PackedSequences(tmp_path / "out" / "train.bin", 8, eot_id=tok.eot_token)
    assert tok.decode(packed[0].inputs) == "Hello!<|endoftext|>H"
    assert packed.position_ids(0).tolist() == [0, 1, 2, 3, 4, 5, 6, 0]
    # Without a manifest that says what the file holds, its ids would be read as uint16.
    manifest = tmp_path / "out" / "manifest.json"
    text = manifest.read_text()
    for damaged in (text[: len(text) // 2], text.replace('"version": 2', '"version": 99')):
        manifest.write_text(damaged)
        with pytest.raises(
            pybpe.errors.FormatError, match="manifest.json: (not a manifest|this manifest has version 99)"
        ):
            TokenFile(tmp_path / "out" / "train.bin")
    # A manifest that does not mention the file, and that of another program, have no effect.
    manifest.write_text(text)
    os.rename(tmp_path / "out" / "train.bin", tmp_path / "out" / "other.bin")
    assert TokenFile(tmp_path / "out" / "other.bin").read().dtype == numpy.uint16
    manifest.write_text(json.dumps({"name": "An app", "version": 3}))
    assert TokenFile(tmp_path / "out" / "other.bin").read().dtype == numpy.uint16


BYTES = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<|endoftext|>"])


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder with uint16 ids of bytes: train.bin and val.bin."""
    (tmp_path / "a.txt").write_text("".join(f"Document {i}.\n\n" for i in range(40)))
    pybpe.binarize(
        BYTES, tmp_path / "a.txt", tmp_path / "raw", format="raw", dtype="uint16", splits=(1, 1), documents="blank"
    )
    return tmp_path / "raw"


def test_what_states_its_dtype_excludes_another(raw: Path, tmp_path: Path) -> None:
    assert len(PackedSequences(raw / "train.bin", 8, dtype="uint16"))
    with pytest.raises(pybpe.errors.ArgumentError, match="train.bin: the manifest says dtype='uint16', not 'uint32'"):
        PackedSequences(raw / "train.bin", 8, dtype="uint32")
    ids = numpy.arange(9, dtype=">u2")
    numpy.save(tmp_path / "a.npy", ids)
    for source in (ids, tmp_path / "a.npy", write_tokens(tmp_path, "shard.bin", ids.astype(numpy.uint16))):
        assert len(PackedSequences(source, 8, dtype="uint16")) == 1
        with pytest.raises(pybpe.errors.ArgumentError, match="holds .?u.*2|holds uint16, not uint32"):
            PackedSequences(source, 8, dtype="uint32")


def test_a_manifest_says_where_documents_end(raw: Path, tmp_path: Path) -> None:
    """llm.c's shards have the mark first, other formats last: the wrong place gives other documents, silently."""
    pybpe.binarize(BYTES, tmp_path / "a.txt", tmp_path / "shards", documents="blank", splits=(1,))
    shards = tmp_path / "shards" / "*.bin"
    assert PackedSequences(shards, 20).document_ids(0).tolist() == [0] * 12 + [1] * 8  # the mark, and "Document 0."
    assert PackedSequences(raw / "train.bin", 20, eot_id=256, eot="append").document_ids(0).tolist()[11:13] == [0, 1]
    for wrong, message in (({"eot": "append"}, "eot='prepend', not 'append'"), ({"eot_id": 7}, "eot_id=256, not 7")):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            PackedSequences(shards, 20, **wrong)  # type: ignore[arg-type]


def test_a_pattern_does_not_join_splits(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(
        pybpe.errors.ArgumentError, match="matches files of the splits train and val: pass a pattern for one"
    ):
        PackedSequences(raw / "*.bin", 8)
    named = PackedSequences([raw / "train.bin", raw / "val.bin"], 8)  # whoever lists both wants both
    for split in ("train", "val"):
        (tmp_path / f"link_{split}.bin").symlink_to(raw / f"{split}.bin")  # as in a workspace
    with pytest.raises(pybpe.errors.ArgumentError, match="splits train and val"):
        PackedSequences(tmp_path / "link_*.bin", 8)
    (raw / "manifest.json").unlink()
    assert len(PackedSequences(raw / "*.bin", 8)) == len(named)


def test_only_files_that_the_manifest_lists_are_read(raw: Path, tmp_path: Path) -> None:
    """A shard that was copied into a folder looks like its own; so do the tokens of a file that is there twice."""
    other = tmp_path / "other.bin"
    other.write_bytes((raw / "train.bin").read_bytes())
    assert len(TokenStream([other, raw / "train.bin"])) == 2 * len(TokenStream(other))  # a copy elsewhere
    copied = raw / "copied.bin"
    copied.write_bytes(other.read_bytes())
    (tmp_path / "link.bin").symlink_to(copied)
    (raw / "link.bin").symlink_to(other)
    for path in (copied, raw / "link.bin", tmp_path / "link.bin", raw / "*.bin"):
        with pytest.raises(
            pybpe.errors.ArgumentError, match=r"\w+.bin: is not among the token files that the manifest"
        ):
            TokenStream(path)
    (tmp_path / "train.bin").symlink_to(raw / "train.bin")
    os.link(other, tmp_path / "hard.bin")
    for pair, message in (
        ([raw / "train.bin"] * 2, "train.bin: given twice"),
        ([raw / "train.bin", tmp_path / "train.bin"], "train.bin: the same file as .*raw/train.bin"),
        ([tmp_path / "hard.bin", other], "other.bin: the same file as .*hard.bin"),
        ([raw / "train.bin", raw / "t*.bin"], "train.bin: given twice"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            TokenStream(pair)
    with open(raw / "train.bin", "ab") as stream:
        stream.write(b"ab")
    with pytest.raises(pybpe.errors.FormatError, match="train.bin: has .* bytes, but the manifest says"):
        TokenStream(raw / "train.bin")
    (raw / "manifest.json").unlink()  # as a run does before it replaces the files
    (raw / ".pybpe-unfinished").mkdir(exist_ok=True)
    (raw / ".pybpe-unfinished" / "tasks" / "settings").mkdir(parents=True)
    with pytest.raises(pybpe.errors.ArgumentError, match="raw: the run that writes to this folder has not finished"):
        TokenStream(tmp_path / "train.bin")


def test_a_manifest_names_the_tokenizer(raw: Path, tmp_path: Path) -> None:
    stream = TokenStream(raw / "train.bin")
    stream.check_tokenizer(BYTES)
    stream.check_tokenizer(BYTES.replace(dropout=0.1))
    other = pybpe.Tokenizer({i: bytes([255 - i]) for i in range(256)}, [], ["<|endoftext|>"])
    with pytest.raises(pybpe.errors.ArgumentError, match="train.bin: another tokenizer made these tokens"):
        stream.check_tokenizer(other)
    pybpe.binarize(
        other, tmp_path / "a.txt", tmp_path / "b", format="raw", dtype="uint16", splits=(1,), documents="blank"
    )
    with pytest.raises(pybpe.errors.ArgumentError, match="raw/train.bin and .*b/train.bin have different tokenizers"):
        TokenStream([raw / "train.bin", tmp_path / "b" / "train.bin"])


def test_fingerprints_tell_tokens_apart(raw: Path) -> None:
    ids = numpy.arange(200_000, dtype=numpy.uint32)
    fingerprint = TokenStream(ids).fingerprint()
    assert TokenStream(ids.astype(numpy.int64)).fingerprint() == fingerprint
    assert TokenStream(ids[:-1]).fingerprint() != fingerprint
    for place, is_noticed in ((0, True), (199_999, True), (1_500, False)):  # between the first two samples
        other = ids.copy()
        other[place] += 1
        assert (TokenStream(other).fingerprint() != fingerprint) == is_noticed
    few = ids[:65_536]
    assert all(
        TokenStream(numpy.where(few == place, 9, few)).fingerprint() != TokenStream(few).fingerprint()
        for place in (1_500, 40_000)
    )
    stated = TokenStream(raw / "train.bin").fingerprint()
    assert stated != TokenStream(TokenFile(raw / "train.bin").read()).fingerprint()  # the manifest's hash is part of it


# ----------------------------------------------------------------------------------------------------
# Faults


def test_damaged_files_name_the_fault(tmp_path: Path) -> None:
    shard = write_tokens(tmp_path, "shard.bin", numpy.arange(10, dtype=numpy.uint16)).read_bytes()
    numpy_file = write_tokens(tmp_path, "a.npy", numpy.arange(1000)).read_bytes()
    numpy.save(tmp_path / "objects.npy", numpy.array([{}], dtype=object), allow_pickle=True)
    faults = {
        "cut.bin": (shard[:-1], "cut.bin: 1043 bytes, expected 1044"),
        "header.bin": (shard[:500], "500 bytes are not a token shard"),
        "version.bin": (shard[:4] + b"\2" + shard[5:], "version 2 at offset 4"),
        "tokenizer.bin": ((20240328).to_bytes(4, "little") + bytes(2000), "a tokenizer of llm.c, not tokens"),
        "odd.bin": (b"\1\0\2", "odd.bin: 3 bytes is not a whole number of uint16"),
        "not.npy": (b"\1\0\2\0", "not.npy: begins with"),
        "cut.npy": (numpy_file[:-1], "cut.npy: damaged"),
        "header.npy": (numpy_file[:20], "header.npy: damaged"),
        "magic.npy": (numpy_file[:6], "magic.npy: damaged"),
        "words.npy": (numpy_file[:10] + b"?" + numpy_file[11:], "words.npy: damaged"),
        "objects.npy": ((tmp_path / "objects.npy").read_bytes(), "objects.npy: damaged, or not an array of numbers"),
    }
    for name, (data, message) in faults.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(pybpe.errors.FormatError, match=message):
            PackedSequences(tmp_path / name, 4)
    for array in (numpy.zeros((2, 3), dtype=int), numpy.zeros(3)):
        numpy.save(tmp_path / "other.npy", array)
        with pytest.raises(pybpe.errors.FormatError, match="expected a one-dimensional array of integers"):
            PackedSequences(tmp_path / "other.npy", 4)


def test_any_damage_to_a_header_of_npy_is_survived(tmp_path: Path) -> None:
    """Either numpy still understands the file, or reading raises FormatError."""
    good = write_tokens(tmp_path, "a.npy", numpy.arange(10)).read_bytes()
    rng = numpy.random.default_rng(1)
    refused = 0
    for _ in range(300):
        data = bytearray(good)
        for place in rng.integers(6, 128, rng.integers(1, 4)):
            data[place] = rng.integers(0, 256)
        (tmp_path / "b.npy").write_bytes(data)
        try:
            TokenFile(tmp_path / "b.npy").read().sum()
        except pybpe.errors.FormatError:
            refused += 1
    assert refused > 60


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for source, message in [
        (tmp_path, "several splits"),
        ([], "inputs is empty"),
        (tmp_path / "*.npy", "no files found"),
        (tmp_path / "pipe", "neither a file nor a folder"),
    ]:
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            TokenStream(source)
    with pytest.raises(FileNotFoundError, match="missing.bin"):
        TokenStream(tmp_path / "missing.bin")


def test_types_are_not_mixed(tmp_path: Path) -> None:
    narrow = write_tokens(tmp_path, "a.bin", numpy.arange(4, dtype=numpy.uint16))
    wide = write_tokens(tmp_path, "b.bin", numpy.arange(4, dtype=numpy.uint32))
    with pytest.raises(pybpe.errors.ArgumentError, match="b.bin holds uint32, but .*a.bin uint16"):
        TokenStream([narrow, wide])
    with pytest.raises(pybpe.errors.ArgumentError, match="int8"):
        TokenStream(narrow, "int8")


@pytest.mark.parametrize("name", ["a.bin", "a.npy"])
def test_a_file_that_became_shorter_is_an_error(tmp_path: Path, name: str) -> None:
    """What is left of it can be read; what was cut off cannot."""
    first = write_tokens(tmp_path, "0.bin", numpy.arange(10, dtype=numpy.uint16))
    path = write_tokens(tmp_path, name, numpy.arange(20_000, dtype=numpy.uint16))
    size = path.stat().st_size
    packed = PackedSequences([first, path], 100)
    last = packed[-1].targets
    ids = packed.stream.slice(20, len(packed.stream))
    os.truncate(path, 5000)
    assert last.sum() > 0 and ids.tolist() == list(range(10, 20_000))
    message = rf"{name}: was truncated from {size} to 5000 bytes while it was open"
    assert packed[0].inputs.tolist() == [*range(10), *range(90)]
    for index in (40, len(packed) - 1):
        with pytest.raises(pybpe.errors.FormatError, match=message) as caught:
            packed[index]
        assert caught.value.offset == 5000


def test_a_file_that_is_replaced_or_grows_is_read_as_it_was(tmp_path: Path) -> None:
    path = write_tokens(tmp_path, "a.bin", numpy.arange(5000, dtype=numpy.uint16))
    packed = PackedSequences(path, 100)
    write_tokens(tmp_path, "new", numpy.zeros(10, dtype=numpy.uint16)).replace(path)
    assert packed[-1].inputs[0] == 4800
    grown = PackedSequences(path, 3)
    with open(path, "ab") as stream:
        stream.write(b"more")
    assert len(grown) == 3 and grown[2].targets.tolist() == [0, 0, 0]


def test_a_token_file_that_was_replaced_is_not_read_with_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More files than a process may have open: a quarter of these stay open, and others are opened again."""
    monkeypatch.setattr("pybpe.support.platform.open_files_limit", lambda: 16)
    for number in range(9):
        numpy.save(tmp_path / f"{number}.npy", numpy.full(10, number, dtype=numpy.uint16))
    before = len(os.listdir("/dev/fd"))
    packed = PackedSequences(str(tmp_path / "*.npy"), 5)
    for order in (range(16, -1, -1), range(17)):
        assert [packed[i].inputs.tolist() for i in order] == [[i // 2] * 5 for i in order]
    assert len(os.listdir("/dev/fd")) <= before + 4
    numpy.save(tmp_path / "other", numpy.full(10, 77, dtype=numpy.uint16))
    os.replace(tmp_path / "other.npy", tmp_path / "0.npy")
    assert packed[len(packed) - 1].inputs[0] == 8
    with pytest.raises(pybpe.errors.FormatError, match=r"0\.npy: was changed or replaced since it was first opened"):
        packed[0]
