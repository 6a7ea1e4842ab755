"""Where the documents of token files came from. The oracle reads the inputs with json, pyarrow and str methods, and
encodes one record at a time."""

import gzip
import json
import logging
import random
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy
import pytest
from corpora import EOT, documents, small_tokenizer
from killed import run_and_die

import pybpe
from pybpe.cli import main
from pybpe.errors import PybpeWarning
from pybpe.support.output_files import FOLDER
from pybpe.tokens.formats import FORMATS
from pybpe.tokens.provenance import document_at, provenance_name
from pybpe.tokens.verification import verify

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = [pytest.mark.usefixtures("small_tasks"), pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")]

Record = tuple[str, int, "str | None"]


def some_documents(rng: random.Random, count: int) -> list[str]:
    """Returns texts, some of them empty, some long."""
    texts = documents(count)
    return [
        rng.choice(["", text, text, text[: rng.randrange(1, 40)], text + texts[i - 1]]) for i, text in enumerate(texts)
    ]


def write_inputs(folder: Path, rng: random.Random) -> list[str]:
    """Writes a file of each kind. Returns the inputs."""
    folder.mkdir(exist_ok=True)
    lines = []
    for i, text in enumerate(some_documents(rng, 90)):
        spelled = rng.choice([json.dumps(f"j{i}"), str(i), "null", '"\\u00e9"'])
        lines.append(f'{{"id": {spelled}, "text": {json.dumps(text)}}}' if i % 7 else f'{{"text": {json.dumps(text)}}}')
        lines += [rng.choice(["", "  ", "not JSON", '{"other": 1}'])] if rng.random() < 0.1 else []
    (folder / "a.jsonl").write_text("\n".join(lines))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[:40]).encode()))
    rows = some_documents(rng, 80)
    table = pyarrow.table({"n": range(80), "text": rows, "id": [f"p{i}" if i % 5 else None for i in range(80)]})
    parquet.write_table(table, folder / "c.parquet", row_group_size=rng.choice([7, 33, 100]))
    (folder / "d.txt").write_text(EOT.join(some_documents(rng, 70)) + rng.choice(["", EOT]))
    (folder / "e.txt").write_text(documents(200)[-1] * 90)  # one document of many tasks
    small = folder / "small"
    small.mkdir(exist_ok=True)
    for i, text in enumerate(some_documents(rng, 12)):
        (small / f"{i:02d}.txt").write_text(text)
    with zipfile.ZipFile(folder / "f.zip", "w") as archive:
        for i, text in enumerate(some_documents(rng, 6)):
            archive.writestr(f"in/{i}.txt", text)
        archive.writestr("in/g.jsonl", "\n".join(lines[:20]))
    return [str(folder / name) for name in ("a.jsonl", "b.jsonl.gz", "c.parquet", "d.txt", "e.txt", "small", "f.zip")]


def valid(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("text"), str) else None


def of_lines(data: bytes) -> Iterator[tuple[str, str | None]]:
    for line in data.decode().split("\n"):
        if line.strip():
            record = valid(line) or {"text": ""}
            value = record.get("id")
            yield record["text"], value if value is None or isinstance(value, str) else json.dumps(value)


def of_text(text: str, kind: str) -> list[str]:
    if kind == "line":
        return text.split("\n")
    return [part for part in text.split(EOT) if part] if kind == "auto" else [text]


def expected(paths: list[str], kind: str = "auto") -> dict[Record, tuple[str, bool]]:
    """Returns the text of each record that has one, and whether special tokens in it are recognized."""
    found: dict[Record, tuple[str, bool]] = {}

    def add(path: str, data: bytes) -> None:
        if path.endswith((".jsonl", ".gz")):
            found.update({(path, row, key): (text, False) for row, (text, key) in enumerate(of_lines(data))})
        elif path.endswith(".parquet"):
            some = parquet.read_table(path).to_pylist()
            found.update({(path, row, each["id"]): (each["text"], False) for row, each in enumerate(some)})
        else:
            texts = of_text(data.decode(), kind)
            found.update({(path, row, None): (text, True) for row, text in enumerate(texts)})

    for path in paths:
        if path.endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    add(f"{path}/{name}", archive.read(name))
        else:
            for each in sorted(Path(path).iterdir()) if Path(path).is_dir() else [Path(path)]:
                data = each.read_bytes()
                add(str(each), gzip.decompress(data) if path.endswith(".gz") else data)
    return {key: (text, is_plain) for key, (text, is_plain) in found.items() if text.replace(EOT * is_plain, "")}


def table_of(folder: Path, file: str) -> list[dict[str, Any]]:
    return parquet.read_table(folder / provenance_name(file)).to_pylist()  # type: ignore[no-any-return]


def traced(folder: Path) -> dict[Record, list[tuple[str, list[int]]]]:
    """Returns the tokens of each record in order, in parts, each with its split. Checks that every token has one."""
    manifest = pybpe.Manifest.load(folder)
    found: dict[Record, list[tuple[str, list[int]]]] = defaultdict(list)
    for split, shards in manifest.shards.items():
        for shard in shards:
            read = FORMATS[str(manifest.settings["format"])].read
            blocks = read(str(folder / shard.file), str(manifest.settings["dtype"]))
            ids = numpy.concatenate([numpy.empty(0, int), *map(numpy.ravel, blocks)]).tolist()
            end = 0
            for row in table_of(folder, shard.file):
                assert row["first_token"] >= end if manifest.packing else row["first_token"] == end
                assert row["tokens"] > 0
                end = row["first_token"] + row["tokens"]
                found[row["file"], row["row"], row.get("id")].append((split, ids[row["first_token"] : end]))
            assert manifest.packing or end == shard.tokens == len(ids)
    return found


def check(tok: pybpe.Tokenizer, folder: Path, records: dict[Record, tuple[str, bool]], has_ids: bool = True) -> None:
    """Compares a folder with the oracle."""
    wanted = {(*key[:2], key[2] if has_ids else None): value for key, value in records.items()}
    found = traced(folder)
    assert found.keys() == wanted.keys()
    for key, (text, is_plain) in wanted.items():
        ids = [each for _, part in found[key] for each in part]
        again = tok.encode(text) if is_plain else tok.encode_ordinary(text)
        assert [each for each in ids if each != tok.eot_token] == [each for each in again if each != tok.eot_token], key
    assert verify(folder, tok)[1] == []


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_every_document_has_its_record(tmp_path: Path, seed: int) -> None:
    rng, tok = random.Random(seed), small_tokenizer()
    paths = write_inputs(tmp_path / "in", rng)
    rng.shuffle(paths)
    form = rng.choice(["llmc", "raw", "npy", "megatron", "llmq"])
    given: dict[str, Any] = {"format": form, "eot": rng.choice(["prepend", "append", "none"]), "min_shard_tokens": 0}
    given |= rng.choice([{"split_by": "hash"}, {"split_by": "token"}, {"val_documents": 31}, {"splits": (1,)}])
    given |= {"shard_tokens": rng.randrange(500, 9000)} if form in ("llmc", "npy", "llmq") else {}
    given |= {"id_key": "id"} if rng.random() < 0.7 else {}
    given |= {"documents": "line"} if rng.random() < 0.3 else {}
    made = pybpe.binarize(tok, paths, tmp_path / "a", on_error="skip", provenance=True, workers=1, **given)
    assert made.settings["provenance"] is True
    check(tok, tmp_path / "a", expected(paths, given.get("documents", "auto")), "id_key" in given)
    if given.get("split_by") == "hash":
        assert all(len({split for split, _ in parts}) == 1 for parts in traced(tmp_path / "a").values())
    again = pybpe.binarize(tok, paths, tmp_path / "b", on_error="skip", provenance=True, workers=2, **given)
    assert again.records == made.records
    plain = pybpe.binarize(tok, paths, tmp_path / "c", on_error="skip", **{**given, "id_key": None})
    assert plain.shards == made.shards and "provenance" not in plain.settings
    assert not list((tmp_path / "c").glob("*.provenance"))


@pytest.mark.slow
def test_provenance_survives_join_mix_and_pack(tmp_path: Path) -> None:
    rng, tok = random.Random(5), small_tokenizer()
    given: dict[str, Any] = {"provenance": True, "split_by": "hash", "min_shard_tokens": 0, "on_error": "skip"}
    records: list[dict[Record, tuple[str, bool]]] = []
    for name, id_key in (("a", "id"), ("b", None)):
        paths = [path for path in write_inputs(tmp_path / f"in{name}", rng) if not path.endswith("e.txt")]
        paths = paths[:3] if name == "a" else paths[3:]
        pybpe.binarize(tok, paths, tmp_path / name, shard_tokens=3000, id_key=id_key, eot="append", **given)
        records.append(expected(paths))
    both = {**records[0], **{(path, row, None): value for (path, row, _), value in records[1].items()}}
    joined = pybpe.join(tok, [tmp_path / "a", tmp_path / "b"], tmp_path / "joined")
    assert joined.settings["id_key"] == "id"
    check(tok, tmp_path / "joined", both)
    ordered = [row for shard in joined.shards["train"] for row in table_of(tmp_path / "joined", shard.file)]
    assert all(
        x["tokens"] + x["first_token"] == y["first_token"] or not y["first_token"] for x, y in zip(ordered, ordered[1:])
    )
    for memory in (None, 1 << 20):
        sources = {name: {"data": str(tmp_path / name), "epochs": 1} for name in ("a", "b")}
        folder = tmp_path / f"mixed{memory}"
        pybpe.mix(tok, {"sources": sources}, folder, shard_tokens=2500, min_shard_tokens=0, memory_limit=memory)
        check(tok, folder, both)
    for form in ("llmc", "npy", "parquet", "webdataset"):
        for packing in ("best-fit", "fill"):
            folder = tmp_path / f"{form}-{packing}"
            pybpe.pack(
                tok,
                tmp_path / "joined",
                folder,
                sequence_length=64,
                format=form,
                packing=packing,
                shard_tokens=1000,
                seed=1,
            )
            check_rows(tok, folder, both)
    parquet.read_table(tmp_path / "parquet-fill")  # provenance is not among the rows


def check_rows(tok: pybpe.Tokenizer, folder: Path, records: dict[Record, tuple[str, bool]]) -> None:
    """Compares the parts of records in rows with the oracle: they are in no order."""
    found = traced(folder)
    assert found.keys() == records.keys() and verify(folder, tok)[1] == []
    for key, (text, is_plain) in records.items():
        ids = sorted(each for _, part in found[key] for each in part if each != tok.eot_token)
        assert ids == sorted(tok.encode(text) if is_plain else tok.encode_ordinary(text)), key
        assert all(part[0] == tok.eot_token for _, part in found[key])


def test_provenance_is_kept_only_if_all_folders_have_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tok = small_tokenizer()
    for name, provenance in (("a", True), ("b", False)):
        (tmp_path / f"{name}.txt").write_text(EOT.join(f"{name} {text}" for text in documents(20)))
        pybpe.binarize(
            tok, tmp_path / f"{name}.txt", tmp_path / name, provenance=provenance, split_by="hash", min_shard_tokens=0
        )
    caplog.set_level(logging.INFO, "pybpe")
    made = pybpe.join(tok, [tmp_path / "a", tmp_path / "b"], tmp_path / "joined")
    assert "b: has no provenance, so the output has none" in caplog.text and not made.files
    assert "provenance" not in made.settings
    with monkeypatch.context() as patch:
        patch.setattr(parquet, "ParquetFile", Mock(side_effect=OSError(5, "Input/output error")))
        with pytest.raises(
            pybpe.errors.FileError, match="a_train_000000.provenance: cannot be read: Input/output error"
        ):
            pybpe.join(tok, [tmp_path / "a"], tmp_path / "unread")
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    (tmp_path / "a" / "manifest.json").write_text(json.dumps(manifest | {"files": []}))
    with pytest.raises(pybpe.errors.FormatError, match="has no provenance of a_"):
        pybpe.join(tok, [tmp_path / "a"], tmp_path / "again")


def test_inspect_shows_the_record_of_a_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok, rng = small_tokenizer(), random.Random(3)
    paths = write_inputs(tmp_path / "in", rng)
    tok.save(tmp_path / "tok.json")
    out = tmp_path / "out"
    made = pybpe.binarize(
        tok, paths, out, provenance=True, id_key="id", on_error="skip", splits=(1,), shard_tokens=9000
    )
    (shard, *_) = made.shards["train"]
    for row in rng.sample(table_of(out, shard.file), 10):
        token = row["first_token"] + row["tokens"] - 1
        assert (
            main(["inspect", str(tmp_path / "tok.json"), "--json", "--where", str(out / shard.file), str(token)]) == 0
        )
        found = json.loads(capsys.readouterr().out)
        assert {key: found[key] for key in row} == row
        text, is_plain = expected(paths)[row["file"], row["row"], row["id"]]
        assert text.startswith(found["text"]) or row["first_token"] == 0
        record = None if found["record"] is None else json.loads(found["record"])
        assert (record is None) == is_plain and (record is None or record["text"] == text)
    for token in (-1, shard.tokens):
        with pytest.raises(pybpe.errors.ArgumentError, match="has no token"):
            document_at(str(out / shard.file), token)


def test_a_key_that_no_record_has_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tok, given = small_tokenizer(), {"provenance": True, "min_shard_tokens": 0, "splits": (1,)}
    some = documents(60)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"id": None, "text": text}) + "\n" for text in some))
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"pybpe_cluster": 7, "text": text}) + "\n" for text in some))
    (tmp_path / "c.txt").write_text(some[0])
    parquet.write_table(pyarrow.table({"text": some, "url": some}), tmp_path / "d.parquet")
    out, error = tmp_path / "out", pybpe.errors.ArgumentError
    for inputs, told in (
        ("b.jsonl", "b.jsonl: no JSON line has the key 'id': pass the key of an id in id_key"),
        ("c.txt", "id_key='id' has no effect: only records have ids"),
    ):
        with pytest.raises(error, match=told):
            pybpe.binarize(tok, tmp_path / inputs, tmp_path / f"of {inputs}", id_key="id", **given)
        assert not list((tmp_path / f"of {inputs}").glob("[!.]*"))
    with pytest.raises(error, match="^id_key must not be empty"):
        pybpe.binarize(tok, tmp_path / "a.jsonl", out, id_key="", **given)
    with pytest.raises(pybpe.errors.FormatError, match="no column 'id': set id_key to one of text, url"):
        pybpe.binarize(tok, [tmp_path / "a.jsonl", tmp_path / "d.parquet"], out, id_key="id", **given)
    assert not list(out.glob("*")) and not (out / FOLDER / "tasks").exists()  # before any work
    monkeypatch.setattr("pybpe.reading.records.LEAST_RECORDS", 20)
    (tmp_path / "e.jsonl").write_bytes((tmp_path / "b.jsonl").read_bytes())
    for names in ("ab", "ba", "eba", "bea"):  # a has it: null
        without = f"{names.strip('a')[0]}.jsonl{' and 1 more' * ('e' in names)}"
        with pytest.warns(PybpeWarning, match=f"{without}: no JSON line has the key 'id', so the ids are null") as told:
            paths = [tmp_path / f"{name}.jsonl" for name in names]
            pybpe.binarize(tok, paths, tmp_path / names, id_key="id", workers=len(names) % 2 + 1, **given)
        assert len(told) == 1
    caplog.set_level("INFO", "pybpe")
    with pytest.raises(error, match="b.jsonl and 1 more: no JSON line has the key 'id'.* Finished work is kept"):
        pybpe.binarize(tok, [tmp_path / "b.jsonl", tmp_path / "e.jsonl"], tmp_path / "late", id_key="id", **given)
    assert "b.jsonl: none of the first 40 JSON lines has the key 'id'" in caplog.messages[0]  # after the first task


def test_inspect_says_that_the_input_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok = small_tokenizer()
    tok.save(tmp_path / "tok.json")
    lines = [json.dumps({"doc": {"text": f"caf\xe9 {text}"}}, ensure_ascii=False) + "\n" for text in documents(30)]
    path, folder = tmp_path / "a.jsonl", tmp_path / "out"
    path.write_bytes("".join(lines).encode("cp1252", "replace"))
    (shard,) = pybpe.binarize(
        tok, path, folder, provenance=True, splits=(1,), text_key="doc.text", encoding="cp1252", min_shard_tokens=0
    ).shards["train"]
    row = table_of(folder, shard.file)[20]
    command = ["inspect", str(tmp_path / "tok.json"), "--where", str(folder / shard.file), str(row["first_token"])]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["changed"] and json.loads(found["record"])["doc"]["text"] == found["text"]
    for changed in ([lines[0], *lines], lines[:20]):
        path.write_bytes("".join(changed).encode("cp1252", "replace"))
        assert main([*command, "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert again == {**found, "record": None, "changed": True}
        assert main(command) == 0
        assert "(the input has changed" in capsys.readouterr().out
    path.unlink()
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**found, "record": None}


@pytest.mark.slow
def test_a_killed_run_resumes_with_the_same_provenance(tmp_path: Path) -> None:
    tok, rng = small_tokenizer(), random.Random(2)
    paths = write_inputs(tmp_path / "in", rng)
    given: dict[str, Any] = {"provenance": True, "id_key": "id", "on_error": "skip", "workers": 1}
    given |= {"split_by": "hash", "min_shard_tokens": 0}
    whole = pybpe.binarize(tok, paths, tmp_path / "whole", **given)
    for point in (7, 30):
        out = tmp_path / f"out{point}"
        assert run_and_die(point, pybpe.binarize, tok, paths, out, **given)
        assert not list(out.glob("*.provenance"))
        assert pybpe.binarize(tok, paths, out, **given).records == whole.records
    check(tok, tmp_path / "out30", expected(paths))


def test_records_are_counted_anew_if_an_input_changes(tmp_path: Path) -> None:
    """Tasks whose part of the input is the same keep their results: their records have other numbers then."""
    tok, path, out = small_tokenizer(), tmp_path / "a.jsonl", tmp_path / "out"
    lines = [json.dumps({"id": f"j{i}", "text": text}) + "\n" for i, text in enumerate(documents(300))]
    given: dict[str, Any] = {"provenance": True, "id_key": "id", "min_shard_tokens": 0, "splits": (1,), "workers": 1}
    path.write_text("".join(lines))
    assert run_and_die(9, pybpe.binarize, tok, path, out, **given)
    assert len(list((out / FOLDER / "tasks").glob("*/*"))) > 3
    changed = "".join(lines)
    first = changed[:40_000].rfind("\n", 0, 20_000) + 1
    end = changed.index("\n", first) + 1
    line = json.loads(changed[first:end])
    some = {"id": line["id"], "text": line["text"][:-40]}, {"id": "more", "text": ""}
    added = "".join(json.dumps(each) + "\n" for each in some)
    added = added[:-1] + " " * (end - first - len(added)) + "\n"  # as many bytes, one record more
    path.write_text(changed[:first] + added + changed[end:])
    made = pybpe.binarize(tok, path, out, **given)
    assert made.records == pybpe.binarize(tok, path, tmp_path / "whole", **given).records
    check(tok, out, expected([str(path)]))


def test_provenance_without_pyarrow_is_refused_before_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text(documents(1)[0])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(pybpe.errors.MissingExtraError, match=r"provenance=True: .*pip install 'pybpe\[parquet\]'"):
        pybpe.binarize(small_tokenizer(), tmp_path / "a.txt", tmp_path / "out", provenance=True)
    assert not (tmp_path / "out").exists()


def test_documents_that_are_objects_have_the_numbers_of_items(tmp_path: Path) -> None:
    tok = small_tokenizer()
    texts = ["", *documents(40), "", documents(3)[2]]
    items = [{"meta": {"url": {"n": i} if i % 9 else None}, "n": i, "doc": {"text": x}} for i, x in enumerate(texts)]
    records = {
        ("<documents>", i, json.dumps({"n": i}) if i % 9 else None): (text, False)
        for i, text in enumerate(texts)
        if text
    }
    given: dict[str, Any] = {"provenance": True, "min_shard_tokens": 0, "split_by": "hash", "workers": 1}
    pybpe.binarize(tok, iter(texts), tmp_path / "texts", **given)
    check(tok, tmp_path / "texts", records, has_ids=False)
    nested = {**given, "id_key": "meta.url", "text_key": "doc.text"}
    pybpe.binarize(tok, iter(items), tmp_path / "records", **nested)
    check(tok, tmp_path / "records", records)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    parquet.write_table(pyarrow.Table.from_pylist(items), tmp_path / "b.parquet")
    for name in ("a.jsonl", "b.parquet"):
        pybpe.binarize(tok, tmp_path / name, tmp_path / f"{name}-out", **nested)
        check(tok, tmp_path / f"{name}-out", {(str(tmp_path / name), *key[1:]): x for key, x in records.items()})
    for i, text in (("meta", {"url": "x"}), ("meta.url", "y")):  # a field of this very name comes first
        items[5][i] = text  # type: ignore[assignment]
    pybpe.binarize(tok, iter(items), tmp_path / "named", **nested)
    assert {key[2] for key in traced(tmp_path / "named") if key[1] == 5} == {"y"}


@pytest.mark.slow
def test_rows_of_a_dataset_are_found(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    tok, texts = small_tokenizer(), documents(60)
    dataset = datasets.Dataset.from_dict({"text": texts, "id": [f"d{i}" for i in range(60)]})
    dataset.save_to_disk(str(tmp_path / "saved"))
    saved = datasets.load_from_disk(str(tmp_path / "saved"))
    given: dict[str, Any] = {"provenance": True, "id_key": "id", "min_shard_tokens": 0, "split_by": "hash"}
    for number, (each, order) in enumerate(
        ((dataset, range(60)), (saved, range(60)), (saved.select(range(50, 9, -1)), range(50, 9, -1)))
    ):
        out = tmp_path / f"out{number}"
        pybpe.binarize(tok, each, out, **given)
        found = traced(out)
        file = {key[0] for key in found}
        assert all(name.endswith(".arrow") for name in file) if number == 1 else file == {"<documents>"}
        check(tok, out, {(*file, row, f"d{i}"): (texts[i], False) for row, i in enumerate(order)})


def test_force_leaves_no_provenance_of_other_files(tmp_path: Path) -> None:
    tok, path, out = small_tokenizer(), tmp_path / "a.txt", tmp_path / "out"
    path.write_text(EOT.join(documents(40)))
    given: dict[str, Any] = {"min_shard_tokens": 0, "splits": (1,), "shard_tokens": 2000}
    made = pybpe.binarize(tok, path, out, provenance=True, **given)
    assert len(list(out.glob("*.provenance"))) == len(made.shards["train"]) > 1
    with pytest.raises(pybpe.errors.ArgumentError, match="has provenance none instead of True"):
        pybpe.binarize(tok, path, out, **given)
    for wanted, more in ((False, {}), (True, {"shard_tokens": 10**6}), (True, {"name": "other"}), (False, {})):
        made = pybpe.binarize(tok, path, out, force=True, provenance=wanted, **{**given, **more})
        names = {provenance_name(shard.file) for shard in made.shards["train"]} if wanted else set()
        assert {file.name for file in out.glob("*.provenance")} == names
        if not wanted:
            with pytest.raises(pybpe.errors.ArgumentError, match="has provenance True instead of none"):
                pybpe.binarize(tok, path, out, provenance=True, **given)


def test_provenance_does_not_import_pandas(tmp_path: Path) -> None:
    """It would take half a second."""
    small_tokenizer().save(tmp_path / "tok.json")
    lines = [json.dumps({"id": value, "text": text}) for value, text in zip(["a", None, 'b"'], documents(3))]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    command = ["binarize", "-t", "tok.json", "a.jsonl", "-o", "out", "--provenance", "--id-key", "id", "--splits", "1"]
    code = f"import sys; from pybpe.cli import main; main({[*command, '--min-shard-tokens', '0']}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "pyarrow" in done.stdout.split() and "pandas" not in done.stdout.split()
    assert [row["id"] for row in table_of(tmp_path / "out", "a_train_000000.bin")] == ["a", None, 'b"']
