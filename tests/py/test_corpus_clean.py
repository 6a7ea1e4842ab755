"""clean: keeps the correct documents in order, with the same result for any number of workers, any executor, and after
a kill; its report and page."""

import gc
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from commands import refusal
from corpora import Twice, content, documents, jsonl, records, standard_input
from killed import run_and_die

import pybpe
from pybpe.cli import main
from pybpe.corpus import Filters, clean, cleaning, output
from pybpe.corpus.duplicates import normalized, without_paragraphs
from pybpe.errors import ArgumentError, PybpeWarning
from pybpe.reading import planning


def texts_of(path: Path) -> list[object]:
    return [record["text"] for record in records(path)]


def write(path: Path, texts: list[str]) -> Path:
    path.write_bytes(jsonl(texts))
    return path


# ----------------------------------------------------------------------------------------------------
# Steps


def test_every_document_stays_without_steps(tmp_path: Path) -> None:
    texts = [*documents(5), "\x00 \ud800 é", "中文" * 10]
    report = clean(str(write(tmp_path / "in.jsonl", texts)), tmp_path / "out.jsonl.gz")
    assert texts_of(tmp_path / "out.jsonl.gz") == [text.replace("\ud800", "\ufffd") for text in texts]
    assert [record["id"] for record in records(tmp_path / "out.jsonl.gz")] == list(range(len(texts)))
    assert (report.documents_in, report.documents_out, report.dropped) == (7, 7, {})
    assert sorted(os.listdir(tmp_path)) == [".out.jsonl.gz.made", "in.jsonl", "out.jsonl.gz"]


def test_texts_are_spelled_in_one_way(tmp_path: Path) -> None:
    """Whatever escapes the input has, and whether a text is copied or changed."""
    text = 'a "quote" \\ \\u0041 \\/ / \x7f \x00\x1f\n\r\t\b\f é 中 \U0001f600'
    spelled = [
        json.dumps(text, ensure_ascii=ascii).replace("/", slash) for ascii in (True, False) for slash in ("/", "\\/")
    ]
    plain = json.dumps(text.replace("\\u", "").replace("\\/", "").replace("\x00\x1f", ""), ensure_ascii=False)
    lines = [f'{{"id": 1, "text": {one}}}\n{{"text": {one}}}\n' for one in [*spelled, plain]]
    (tmp_path / "in.jsonl").write_text("".join(lines), encoding="utf-8")
    clean(str(tmp_path / "in.jsonl"), tmp_path / "out.jsonl")
    wanted = [json.dumps(json.loads(line), ensure_ascii=False) for line in "".join(lines).splitlines()]
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines() == wanted


def test_a_text_in_an_object(tmp_path: Path) -> None:
    """A field with the very name of the key wins. Other fields stay, however the text changes."""
    lines = ['{"doc": {"n": 1e2, "text": "a@b.example one"}, "x": 1}', '{"doc.text": "two", "doc": {"text": "no"}}']
    lines.append('{"doc": {"text": "x\\u0041"}}')
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    steps: dict[str, Any] = {"scrub_pii": True, "dedup_paragraphs": True, "dedup": "exact"}
    report = clean(str(tmp_path / "in.jsonl"), tmp_path / "o.jsonl", text_key="doc.text", **steps)
    assert (tmp_path / "o.jsonl").read_text().splitlines() == [
        '{"doc": {"n": 1e2, "text": "<EMAIL> one"}, "x": 1}', lines[1], '{"doc": {"text": "xA"}}'
    ]  # fmt: skip
    assert report.documents_out == 3


@pytest.mark.filterwarnings("ignore:.*uses these bytes unchanged")
def test_text_files_are_divided(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one<|endoftext|>two\n<|endoftext|>\xff three")
    (tmp_path / "b.txt").write_text("four", encoding="utf-8")
    clean([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")], tmp_path / "out.jsonl")
    assert texts_of(tmp_path / "out.jsonl") == ["one", "two\n", "\ufffd three", "four"]
    clean(str(tmp_path / "*.txt"), tmp_path / "out.jsonl", documents="file", force=True)
    assert len(texts_of(tmp_path / "out.jsonl")) == 2


def test_all_steps_together(tmp_path: Path, small_tasks: None) -> None:
    good = documents(60)
    texts = [
        "tiny", good[0], "Cafe\u0301 au lait, " + good[1], *good, good[5].upper(), good[7], "a@b.example " + good[9],
    ]  # fmt: skip
    steps: dict[str, Any] = {"normalizer": "NFC", "filters": Filters(min_chars=20), "scrub_pii": ["EMAIL"]}
    path = str(write(tmp_path / "in.jsonl", texts))
    report = clean(path, tmp_path / "out.jsonl", dedup="normalized", **steps)
    expected = [good[0], "Caf\u00e9 au lait, " + good[1], *good[1:], "<EMAIL> " + good[9]]
    assert texts_of(tmp_path / "out.jsonl") == expected
    assert report.dropped == {"duplicate": 3, "min_chars": 1}
    assert report.changes == {"EMAIL": 1}
    assert report.documents_in == len(texts) == report.documents_out + 4
    assert report.tally.bytes["out"] == sum(len(text.encode()) for text in expected)


def test_exact_is_exact(tmp_path: Path) -> None:
    path = str(write(tmp_path / "in.jsonl", ["A b", "a b", "A b", "A  b"]))
    report = clean(path, tmp_path / "o.jsonl", dedup="exact")
    assert texts_of(tmp_path / "o.jsonl") == ["A b", "a b", "A  b"] and report.dropped == {"duplicate": 1}


def test_paragraphs(tmp_path: Path) -> None:
    same, other = "This is a paragraph of a footer, long enough.", "Another paragraph that stands only here once."
    texts = [f"{other}\n\n{same}\n\nYes.\n\nYes.", f"{same}\n \n{other} B\n\nYes.", same, f"{same}\n\n{same} C"]
    report = clean(str(write(tmp_path / "in.jsonl", texts)), tmp_path / "out.jsonl", dedup_paragraphs=True)
    assert texts_of(tmp_path / "out.jsonl") == [texts[0], f"{other} B\n\nYes.", f"{same} C"]
    assert report.dropped == {"paragraphs": 1} and report.changes == {"paragraph": 3}
    report.save(tmp_path / "report.json")
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["bytes"]["paragraphs"] == len(same) and [text for _, text in told["samples"]["paragraphs"]] == [same]
    assert without_paragraphs(texts[0], {0, 1}) == ("Yes.\n\nYes.", [other, same])


def test_paragraphs_of_dropped_documents_do_not_count(tmp_path: Path, small_tasks: None) -> None:
    texts = [text + "\n\nA footer that comes after " + text[:12] for text in documents(30)]
    path = str(write(tmp_path / "in.jsonl", [*texts, *texts]))
    report = clean(path, tmp_path / "out.jsonl", dedup="exact", dedup_paragraphs=True)
    assert texts_of(tmp_path / "out.jsonl") == texts and report.changes == {}


def test_normalized() -> None:
    assert normalized("Ｈello, WÖRLD! \n") == normalized("hello wörld") != normalized("hello world")
    assert normalized("...") == "..." and normalized("中文，") == "中文"
    # NFKC uses the C library's tables under every Python; newer tables turn this digit into a 0.
    assert normalized("\U0001fbf0") != normalized("0")


def vowels(text: str) -> float:
    return sum(c in "aeiou" for c in text) / len(text)


def test_scorers(tmp_path: Path) -> None:
    path = str(write(tmp_path / "in.jsonl", ["aaa", "xyz", "ax"]))
    report = clean(path, tmp_path / "out.jsonl", scorers=[("vowels", vowels, 0.5)])
    assert texts_of(tmp_path / "out.jsonl") == ["xyz", "ax"] and report.dropped == {"score vowels": 1}
    for wrong in (lambda text: float("nan"), lambda text: 1 / 0, lambda text: "x"):
        with pytest.raises(pybpe.errors.ArgumentError, match="'bad'"):
            clean(path, tmp_path / "no.jsonl", scorers=[("bad", wrong, 1)])  # type: ignore[list-item]
    assert not (tmp_path / "no.jsonl").exists()


# ----------------------------------------------------------------------------------------------------
# Runs that were interrupted


def test_what_another_run_left_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "TASK_BYTES", 5000)
    path = str(write(tmp_path / "in.jsonl", documents(50)))
    calls: list[int] = []

    def interrupted(text: str) -> float:
        calls.append(1)
        if len(calls) == 25:
            raise KeyboardInterrupt
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        clean(path, tmp_path / "out.jsonl", scorers=[("s", interrupted, 1)], workers=1)
    assert (tmp_path / ".out.jsonl.unfinished").exists()
    clean(path, tmp_path / "out.jsonl", scorers=[("s", interrupted, 1)], workers=1)
    assert 50 <= len(calls) < 70  # some were not done again
    assert texts_of(tmp_path / "out.jsonl") == documents(50)
    with pytest.warns(PybpeWarning, match="out.jsonl: is empty, because no document was kept"):
        clean(path, tmp_path / "out.jsonl", filters=Filters(min_chars=10**6), force=True)
    assert texts_of(tmp_path / "out.jsonl") == []


@pytest.mark.parametrize(
    ("data", "given"),
    [
        (b'{"text": ""}\n', {}),
        (b"{\n", {"on_error": "skip", "documents": "jsonl"}),
        (b'{"text": "a"}\n', {"where": "no > 3"}),
        (b"\0\1", {}),
    ],
)
@pytest.mark.parametrize("out", ["out.jsonl", "out"])
def test_a_refused_call_that_found_nothing_leaves_nothing(
    tmp_path: Path, data: bytes, given: dict[str, Any], out: str
) -> None:
    if "where" in given:
        pytest.importorskip("duckdb")
    path = tmp_path / "in.jsonl"
    path.write_bytes(data)
    with standard_input(str(path)), pytest.raises(pybpe.errors.Error):
        clean("-", tmp_path / out, workers=1, **given)
    assert [found.name for found in tmp_path.rglob("*")] == ["in.jsonl"]


# ----------------------------------------------------------------------------------------------------
# Reports and the command


def test_the_report_escapes_what_it_shows(tmp_path: Path) -> None:
    evil = "<script>alert('x')</script> & \"quotes\" "
    write(tmp_path / "in.jsonl", [evil, evil, evil * 50, "a@b.example " + evil])
    report = clean(
        str(tmp_path / "in.jsonl"), tmp_path / "o.jsonl", filters=Filters(max_chars=900), dedup="exact", scrub_pii=True
    )
    report.save(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script" not in page and "&lt;script&gt;alert(&#x27;x&#x27;)" in page and "a@b.example" in page
    assert "http" not in page and page.startswith("<!doctype html>")
    assert 'name="viewport"' in page  # otherwise phones show the page as wide as a desktop screen

    scorers = [("<script>", len, 100)]  # so the score is called in a title, a row and the samples
    page = clean(str(tmp_path / "in.jsonl"), tmp_path / "o.jsonl", scorers=scorers, force=True).to_html()
    assert "<script" not in page and page.count("score &lt;script&gt;") == 3

    report.save(tmp_path / "r.json")
    facts = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert facts["dropped"] == {"duplicate": 1, "max_chars": 1} and facts["limits"] == {"max_chars": 900}
    assert facts["histograms"]["chars in"] == [[32.0, 3], [1024.0, 1]]
    assert facts["changes"] == {"EMAIL": 1}


def test_scores_may_be_any_numbers(tmp_path: Path) -> None:
    """-inf raised an OverflowError, and each of many large numbers had its own bin."""
    scores = [float("-inf"), -500.0, -300.0, -0.29, 0.0, 0.5, 1.0, 3.0, 1e300, float("inf")]
    write(tmp_path / "in.jsonl", [str(i) for i in range(len(scores))])

    def score(text: str) -> float:
        return scores[int(text)]

    report = clean(str(tmp_path / "in.jsonl"), tmp_path / "o.jsonl", scorers=[("s", score, 2)], workers=1)
    bins = dict(report.to_json()["histograms"]["score s"])
    assert bins == {-(2.0**1023): 1, -256: 2, -0.3: 1, 0: 1, 0.5: 1, 1: 1, 2: 1, 2.0**996: 1, 2.0**1023: 1}
    assert report.dropped == {"score s": 3} and "-256 to -512" in report.to_html()
    json.dumps(report.to_json(), allow_nan=False)


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.jsonl", ["one two three", "one two three", "four", "ann@example.com wrote five six"])
    (tmp_path / "my_scores.py").write_text("def sixes(text):\n    return text.count('six')\n", encoding="utf-8")
    assert main(["corpus", "in.jsonl", "-o", "out.jsonl", "--dedup", "--min-words", "2", "--scrub-pii", "--json"]) == 0
    assert texts_of(tmp_path / "out.jsonl") == ["one two three", "<EMAIL> wrote five six"]
    assert json.loads(capfd.readouterr().out)["dropped"] == {"duplicate": 1, "min_words": 1}
    assert main(["corpus", "in.jsonl", "-o", "-", "--max-score", "my_scores:sixes=0", "--dedup"]) == 0
    out, err = capfd.readouterr()
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["one two three", "four"]
    assert "dropped, score my_scores:sixes: 1 (25.0%)" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("in.jsonl -o out.txt", "name it .jsonl"),
        ("in.jsonl -o in.jsonl", "would replace the input"),
        ("in.jsonl -o o.jsonl --filters best", "--filters must be gopher, fineweb or a TOML file, not 'best'"),
        ("in.jsonl -o o.jsonl --near-dedup 1.5", "--near-dedup must be"),
        ("in.jsonl -o o.jsonl --max-score nowhere:f=1", "MODULE:FUNCTION=NUMBER"),
        ("in.jsonl -o o.jsonl --memory-limit 1k --dedup", "--memory-limit must be"),
        ("in.jsonl -o o.jsonl --text-key body", "string 'body'"),
        ("--dedup in.jsonl -o o.jsonl", "not 'in.jsonl'; put files before this option"),
        ("--scrub-pii in.jsonl -o o.jsonl", "not 'in.jsonl'; put files before this option"),
    ],
)
def test_wrong_arguments(arguments: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = write(tmp_path / "in.jsonl", ["text"]).read_bytes()
    assert message in refusal(f"corpus {arguments}")
    assert (tmp_path / "in.jsonl").read_bytes() == content and os.listdir(tmp_path) == ["in.jsonl"]


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pybpe.corpus import steps

    steps._detector.cache_clear()
    monkeypatch.setitem(sys.modules, "eldc", None)
    write(tmp_path / "in.jsonl", ["text"])
    assert "pip install 'pybpe[" in refusal(f"corpus {tmp_path}/in.jsonl -o {tmp_path}/o.jsonl --languages en")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"filters": "gopher"}, "filters must be corpus.Filters"),
        ({"min_confidence": 0.5}, "name the languages"),
        ({"keep_near": True}, "how similar"),
        ({"min_confidence": "0.5"}, "min_confidence must be a number"),
        ({"languages": 5}, "languages must be a list of strings"),
        ({"scrub_pii": 5}, "scrub_pii must be a list of strings"),
        *(({"scorers": wrong}, r"\(name, function, max_score\)") for wrong in (1.5, "ab")),
        *(
            ({"scorers": [wrong]}, r"a scorer must be \(name, function, max_score\)")
            for wrong in (1.5, len, ("name", len), ("name", "len", 1))
        ),
        ({"scorers": [("name", len, "1")]}, "the max_score of scorer 'name' must be a number"),
        ({"inputs": []}, "inputs is empty"),
        ({"languages": "en"}, "must be a list such as"),
        ({"dedup": "fuzzy"}, "dedup must be one of exact"),
        ({"min_confidence": 2.0}, "min_confidence must be from 0 to 1"),
        ({"near_dedup": 0.8, "text_key": "pybpe_cluster"}, "'pybpe_cluster' is a field that this call writes"),
    ],
)
def test_arguments_of_the_wrong_kind(arguments: dict[str, object], message: str, tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", ["text"])
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        clean(**{"inputs": str(tmp_path / "in.jsonl"), "out": tmp_path / "o.jsonl"} | arguments)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_workers_find_numpy_imported() -> None:
    """In the forked child of a process with threads, the first import of numpy sometimes hung."""
    code = """
import sys
from pybpe.corpus import running
assert "numpy" not in sys.modules
with running.process_pool(1) as pool:
    assert pool.submit(eval, "'numpy' in __import__('sys').modules").result()
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""


# ------------------------------------------------------------------------------------------------------
# A corpus that an executor's workers clean: the same bytes as in one process, whatever happens to them.


GIVEN: dict[str, Any] = {
    **{"filters": Filters(min_chars=513), "scrub_pii": True, "dedup": "exact", "near_dedup": 0.7},
    **{"dedup_paragraphs": True, "progress": False},
}


@pytest.fixture
def web(tmp_path: Path, small_tasks: None) -> Path:
    """Returns 300 documents, 40 of which have near duplicates in chains, and 30 exact ones, in many small tasks."""
    rng = random.Random(4)
    words = [f"word{i}" for i in range(3000)]
    texts = [rng.choices(words, k=60) for _ in range(200)]
    for number in range(40):
        for _ in range(rng.randrange(1, 4)):
            texts.append(list(texts[-1] if rng.random() < 0.5 else texts[number]))
            texts[-1][rng.randrange(60)] = "changed"
    texts += texts[:30]
    rng.shuffle(texts)
    lines = (json.dumps({"id": i, "text": " ".join(text)}) + "\n" for i, text in enumerate(texts))
    (tmp_path / "web.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path / "web.jsonl"


def cleaned(web: Path, name: str, **more: Any) -> tuple[bytes, Any]:
    """Returns the output file and the report of `clean`."""
    report = clean(str(web), web.with_name(name), **GIVEN, **more)
    return web.with_name(name).read_bytes(), report.to_json()


def shown(web: Path) -> list[str]:
    """Returns the names of the files there, except those that say how another was made."""
    return sorted(name for name in os.listdir(web.parent) if not name.endswith(".made"))


def test_any_workers_and_any_executor_give_the_same(web: Path) -> None:
    expected = cleaned(web, "one.jsonl", workers=1)
    dropped = expected[1]["dropped"]
    assert dropped["near_duplicate"] > 40 and dropped["duplicate"] > 15 and dropped["min_chars"] > 0
    assert cleaned(web, "2.jsonl", workers=2) == expected
    with ProcessPoolExecutor(3, mp_context=get_context("fork")) as executor:
        assert cleaned(web, "3.jsonl", executor=executor, workers=3) == expected
    with Twice(2) as executor:  # tasks that run twice count once
        assert cleaned(web, "4.jsonl", executor=executor) == expected
    assert shown(web) == ["2.jsonl", "3.jsonl", "4.jsonl", "one.jsonl", "web.jsonl"]


def test_a_finished_call_is_complete(web: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A pipeline that runs again goes on. Nothing else is replaced without `force`."""
    out, more = web.with_name("out.jsonl"), {"workers": 1, "on_error": "skip"}
    with web.open("a") as stream:
        stream.write('{"text": 1}\n')
    with pytest.warns(PybpeWarning, match="1 of 303 records"):
        expected = cleaned(web, "out.jsonl", **more)
    before = out.stat()
    with caplog.at_level("INFO", "pybpe"):
        assert cleaned(web, "out.jsonl", **more) == expected
    assert f"{out}: already complete ({expected[1]['documents_out']} documents)" in caplog.messages
    assert out.stat() == before
    for changed in ({"keep_near": True}, {"on_error": "stop"}, {"dedup": None}):
        with pytest.raises(ArgumentError, match=re.escape(f"{out}: was not made by this call")):
            clean(web, out, **GIVEN | more | changed)
    out.write_bytes(out.read_bytes()[:-1] + b" ")
    with pytest.raises(ArgumentError, match="was not made by this call"):
        cleaned(web, "out.jsonl", **more)
    with pytest.warns(PybpeWarning, match="1 of 303 records"):
        assert cleaned(web, "out.jsonl", force=True, **more) == expected
    web.write_text('{"text": "%s"}\n' % ("other " * 100))
    with pytest.raises(ArgumentError, match="was not made by this call"):
        cleaned(web, "out.jsonl", **more)
    out.write_bytes(b"")
    cleaned(web, "out.jsonl", **more)
    words = ["corpus", str(web), "-o", str(out), "--dedup", "--workers", "1", "--quiet"]
    assert main(words) == 2
    assert main([*words, "--force"]) == 0
    assert main(words) == 0


def test_a_folder_of_several_files(web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cleaned(web, "whole.jsonl", workers=1)[0]
    more: Any = {"format": "jsonl", "shard_bytes": 20_000}
    reports = [
        clean(web, web.with_name(name), **GIVEN, **more, workers=n).to_json() for name, n in (("a", 1), ("b", 2))
    ]
    files = [{path.name: path.read_bytes() for path in sorted(web.with_name(name).glob("part-*"))} for name in "ab"]
    assert b"".join(files[0].values()) == whole and len(files[0]) > 3
    assert files[0] == files[1] and reports[0] == reports[1]
    assert pybpe.count_words(web.with_name("a")) == pybpe.count_words(web.with_name("whole.jsonl"))
    assert clean(web, web.with_name("a"), **GIVEN, **more).to_json() == reports[0]
    with pytest.raises(ArgumentError, match="This call has shard_bytes 30000 instead of 20000: choose another"):
        clean(web, web.with_name("a"), **GIVEN, **{**more, "shard_bytes": 30_000})
    with pytest.raises(ArgumentError, match="This call has scrub_pii none instead of EMAIL,.*: choose"):
        clean(web, web.with_name("a"), **{**GIVEN, **more, "scrub_pii": False})
    monkeypatch.chdir(web.parent)
    with pytest.raises(ArgumentError, match=f"1 input that is named differently, {web.name} instead of {web}: choose"):
        clean(web.name, web.with_name("a"), **GIVEN, **more)
    os.utime(web, (1, 1))
    with pytest.raises(ArgumentError, match=f"This call has 1 input that is changed, {web}: choose"):
        clean(web, web.with_name("a"), **GIVEN, **more)
    clean(web, web.with_name("a"), **GIVEN, force=True)
    assert sorted(content(web.with_name("a"))) == [".corpus.made", "part-000000.jsonl.zst"]
    web.with_name("a").joinpath("notes.txt").write_text("mine")
    with pytest.raises(ArgumentError, match="contains other files, such as notes.txt: use another folder"):
        clean(web, web.with_name("a"), **GIVEN, force=True)
    for out, given, message in (
        ("x.txt", {}, "name it .jsonl.zst, .jsonl.gz, .jsonl, .parquet, or name a folder"),
        ("x.jsonl", {"format": "jsonl"}, "format='jsonl' has no effect: the name of a file has its format"),
        ("x", {"format": "csv"}, "format must be one of"),
        ("x", {"shard_bytes": 0}, "shard_bytes must be at least 1"),
    ):
        with pytest.raises(ArgumentError, match=re.escape(message)):
            clean(web, web.with_name(out), **given)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        calls = iter([output.give_name] * 2)
        patch.setattr(output, "give_name", lambda *given: next(calls, interrupted)(*given))
        clean(web, web.with_name("b"), **GIVEN, **{**more, "shard_bytes": 30_000}, force=True)
    with pytest.raises(ArgumentError, match="the `pybpe corpus` that writes to this folder has not ended"):
        pybpe.count_words(web.with_name("b"))
    clean(web, web.with_name("b"), **GIVEN, **{**more, "shard_bytes": 30_000})
    clean(web, web.with_name("c"), **GIVEN, **{**more, "shard_bytes": 30_000})
    files = [{path.name: path.read_bytes() for path in web.with_name(name).glob("part-*")} for name in "bc"]
    assert files[0] == files[1]


def test_a_folder_never_replaces_its_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.jsonl", documents(50))
    more: Any = {"format": "jsonl", "shard_bytes": 5000, "force": True}
    clean("in.jsonl", "out", **more)
    before = content(tmp_path / "out")
    os.symlink("out/part-000000.jsonl", "link.jsonl")
    for inputs in ("out/part-000000.jsonl", ["in.jsonl", "out/*.jsonl"], "out", "link.jsonl"):
        with pytest.raises(ArgumentError, match="the output would replace the input"):
            clean(inputs, "out", **more)
    with pytest.raises(ArgumentError, match="no files found except pybpe's own"):
        clean("o[u]t", "out", **more)
    assert content(tmp_path / "out") == before


def test_a_folder_has_no_other_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call would refuse it."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.jsonl", ["text"])
    with pytest.raises(ArgumentError, match="out/list.jsonl: skipped must not be in the output folder, out"):
        clean("in.jsonl", "out", on_error="skip", skipped="out/list.jsonl")
    for option in ("--report out/report.html", "--on-error skip --skipped out/list.jsonl"):
        flag = option.split()[-2]
        assert f"{flag} must not be in the output folder" in refusal(f"corpus in.jsonl -o out {option}")
    assert not list(tmp_path.glob("out/*"))


def test_parquet_refuses_objects_without_fields(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "in.jsonl").write_text('{"text": "one", "meta": {}}\n')
    with pytest.raises(pybpe.errors.FormatError, match="o.parquet: the records do not fit.*'meta'.*choose JSON lines"):
        clean(tmp_path / "in.jsonl", tmp_path / "o.parquet")
    with (tmp_path / "in.jsonl").open("a") as stream:
        stream.write('{"text": "two", "meta": {"x": 1}}\n')
    assert clean(tmp_path / "in.jsonl", tmp_path / "o.parquet").documents_out == 2


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_no_file_of_a_folder_is_empty(tmp_path: Path, small_tasks: None, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    texts = ["long enough " * 100 if i < 40 or 60 < i < 90 else "x" * 1000 for i in range(200)]
    write(tmp_path / "in.jsonl", texts)
    more: Any = {"format": form, "shard_bytes": 1, "filters": Filters(min_words=5)}
    clean(tmp_path / "in.jsonl", tmp_path / "out", **more)
    files = sorted((tmp_path / "out").glob("part-*"))
    clean(files, tmp_path / "whole.jsonl")
    assert len(records(tmp_path / "whole.jsonl")) == 69 and len(files) > 3
    for number, path in enumerate(files):
        assert clean(path, tmp_path / f"{number}.jsonl").documents_out
    with pytest.warns(PybpeWarning, match="is empty, because no document was kept"):
        clean(tmp_path / "in.jsonl", tmp_path / "none", **{**more, "filters": Filters(min_words=500)})
    assert len(list((tmp_path / "none").glob("part-*"))) == 1


def test_too_many_files_are_refused(web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The documents that were left were lost."""
    more: Any = {"format": "jsonl", "shard_bytes": 1, "workers": 1}
    monkeypatch.setattr(output, "_MOST_FILES", 2)
    with pytest.raises(ArgumentError, match="out: would need more than 2 files: raise shard_bytes"):
        clean(web, web.with_name("out"), **more)
    clean(web, web.with_name("out"), **{**more, "shard_bytes": 10**6})
    assert len(records(web.with_name("out") / "part-000000.jsonl")) == 302


def test_parquet_files_end_at_their_size(web: Path) -> None:
    pytest.importorskip("pyarrow")
    clean(web, web.with_name("out"), format="parquet", shard_bytes=20_000)
    assert len(list(web.with_name("out").glob("part-*"))) > 1


def test_headers_are_read_one_at_a_time(web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive, decide = list[int](), cleaning.Decisions

    def counted(*given: Any) -> Any:
        found = [it for it in gc.get_objects() if isinstance(it, dict) and {"tally", "fields", "sections"} <= it.keys()]
        alive.append(len(found))
        return decide(*given)

    monkeypatch.setattr(cleaning, "Decisions", counted)
    cleaned(web, "out.jsonl", workers=1)
    assert alive[0] <= 2


def test_results_depend_on_what_evaluates_a_condition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb")
    write(tmp_path / "in.jsonl", ["text"])
    for condition, changes in ((None, False), ("id == 0", True)):
        clean(tmp_path / "in.jsonl", tmp_path / "out.jsonl", where=condition, force=True)
        monkeypatch.setattr(duckdb, "__version__", f"another than {duckdb.__version__}")
        with pytest.raises(ArgumentError, match="was not made by this call") if changes else nullcontext():
            clean(tmp_path / "in.jsonl", tmp_path / "out.jsonl", where=condition)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("out", ["out.jsonl", "out"])
def test_a_kill_at_any_access_to_the_disk(web: Path, out: str) -> None:
    more: Any = {"workers": 1, **({"format": "jsonl", "shard_bytes": 20_000} if out == "out" else {}), **GIVEN}
    clean(web, web.with_name(f"whole-{out}"), **more)
    for point in range(200):
        if not run_and_die(point, clean, web, web.with_name(out), **more):
            break
        clean(web, web.with_name(out), **more)
        places = [web.with_name(name) for name in (f"whole-{out}", out)]
        found = [content(place) if out == "out" else place.read_bytes() for place in places]
        assert found[0] == found[1], point
        shutil.rmtree(places[1]) if out == "out" else places[1].unlink()
    assert 5 < point < 199


class Dying(ProcessPoolExecutor):
    """Kills the worker that takes the `number`-th task, after questions: the result of this task never arrives."""

    def __init__(self, number: int) -> None:
        super().__init__(2, mp_context=get_context("fork"))
        self._left = number + 2  # questions whether the workers see the folder

    def submit(self, function: Any, *args: Any, **keywords: Any) -> Future[Any]:  # type: ignore[override]
        self._left -= 1
        if self._left == 0:
            return super().submit(signal.raise_signal, signal.SIGKILL)
        return super().submit(function, *args, **keywords)


def test_after_a_worker_died_the_same_call_resumes(web: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = cleaned(web, "one.jsonl", workers=1)
    web.with_name("out.jsonl").write_bytes(b"old")
    with Dying(4) as executor, pytest.raises(pybpe.errors.WorkerError, match="it resumes|refused a task"):
        cleaned(web, "out.jsonl", executor=executor, workers=1, force=True)
    assert web.with_name("out.jsonl").read_bytes() == b"old"
    assert shown(web) == [".out.jsonl.unfinished", "one.jsonl", "out.jsonl", "web.jsonl"]
    with caplog.at_level("INFO", "pybpe"):
        assert cleaned(web, "out.jsonl", executor=ThreadPoolExecutor(1), force=True) == expected
    assert any(re.fullmatch(r"resuming: [1-4] of \d+ tasks are done already", told) for told in caplog.messages)
    assert shown(web) == ["one.jsonl", "out.jsonl", "web.jsonl"]


def test_workers_that_do_not_see_the_folder_send_their_results(web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = cleaned(web, "one.jsonl", workers=1)
    assert cleaned(web, "seen.jsonl", executor=ThreadPoolExecutor(2)) == expected
    monkeypatch.setattr("pybpe.support.executors.is_shared", lambda *_: False)
    assert cleaned(web, "sent.jsonl", executor=ThreadPoolExecutor(2)) == expected


JOB = """
import os, sys
from pybpe.corpus import Filters, clean
from pybpe.reading import planning

planning.TASK_BYTES, calls = 15_000, 0


def counted(text):
    global calls
    calls += 1
    if calls == int(sys.argv[2]):
        os._exit(9)
    return 0


filters = Filters(min_chars=513)
scorers = [("counted", counted, 1)]
clean(sys.argv[1], "killed.jsonl", filters=filters, scorers=scorers, scrub_pii=True, dedup="exact", workers=1)
print(calls)
"""


def test_a_killed_process_is_resumed_by_another(web: Path) -> None:
    """The settings have the same hash there."""

    def calls(dies_at: int) -> str:
        web.with_name("job.py").write_text(JOB)
        order = [sys.executable, "job.py", "web.jsonl", str(dies_at)]
        return subprocess.run(order, cwd=web.parent, capture_output=True, text=True).stdout

    whole = int(calls(-1))
    assert calls(whole * 3 // 4) == ""
    assert 0 < int(calls(-1)) < whole // 2


def test_a_result_that_became_shorter_is_refused(web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the duplicates are searched for."""
    decide = cleaning.Decisions

    def shortened(*args: Any) -> Any:
        for path in web.with_name(".out.jsonl.unfinished").glob("tasks/*/*"):
            os.truncate(path, path.stat().st_size // 2)
        return decide(*args)

    monkeypatch.setattr(cleaning, "Decisions", shortened)
    with pytest.raises(pybpe.errors.FormatError, match=r"tasks/.*: damaged: run the same command again"):
        cleaned(web, "out.jsonl", workers=1)
    assert not web.with_name("out.jsonl").exists()
