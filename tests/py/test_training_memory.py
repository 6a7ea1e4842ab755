"""Training keeps to its memory limit, or says what it needs and which sample needs less."""

import logging
import os
import re
from pathlib import Path

import pytest
from texts import chinese

import pybpe
from pybpe.support.platform import machine_memory
from pybpe.training import memory, word_counter


def test_the_growth_of_words_is_measured() -> None:
    growth = memory.Growth()
    for occurrences in range(10**5, 10**6, 10**5):
        assert growth.exponent is None or growth.exponent == pytest.approx(0.9, abs=1e-3)
        growth = growth.now(occurrences, round(3 * occurrences**0.9))
    assert growth.exponent is not None


@pytest.mark.parametrize("spilled", [False, True])
def test_words_that_do_not_fit_are_refused_with_a_sample_that_fits(
    spilled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.txt").write_text(chinese()[:30_000], encoding="utf-8")
    limit = 300_000
    monkeypatch.setattr(word_counter, "LEAST_MEMORY", 1)
    if not spilled:
        monkeypatch.setattr(word_counter.WordCounter, "_is_full", lambda *_: False)
    with pytest.raises(pybpe.errors.LimitError, match=r"memory_limit allows \(0.3 MB") as refused:
        pybpe.train(tmp_path / "t.txt", vocab_size=300, memory_limit=limit)
    found = re.search(r"max_bytes=(\d+)", str(refused.value))
    assert found is not None and int(found[1]) > 1000
    pybpe.train(tmp_path / "t.txt", vocab_size=300, memory_limit=limit, max_bytes=int(found[1]))
    counts = pybpe.count_words(tmp_path / "t.txt")
    with pytest.raises(pybpe.errors.LimitError, match="with max_bytes, or"):
        pybpe.train(counts=counts, vocab_size=300, memory_limit=limit)


def test_what_merging_takes_is_said_if_words_grow_as_the_text_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(memory, "_LARGE", 1000)
    monkeypatch.setattr(word_counter, "_LARGE_TABLE", 10)
    caplog.set_level(logging.INFO, "pybpe")
    for power, told in ((0.5, []), (1, ["30000 distinct words, which grow with the text to the power of 1.00"])):
        words = [f" n{int(i**power)}" for i in range(30_000)]
        texts = ("".join(words[i : i + 6000]) for i in range(0, 30_000, 6000))
        pybpe.train(texts, vocab_size=300, pattern=r" n\d+", workers=1)
        assert [record.message.split(":")[0] for record in caplog.records] == told


@pytest.mark.skipif(os.name == "nt", reason="Python cannot say on Windows")
def test_the_memory_of_the_machine() -> None:
    found = machine_memory()
    assert found is not None and 1 << 20 < found <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
