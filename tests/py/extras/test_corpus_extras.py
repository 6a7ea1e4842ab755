"""Languages, with eldc; all steps together."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("eldc")

from corpora import records  # noqa: E402
from texts import english  # noqa: E402

import pybpe  # noqa: E402
from pybpe import corpus  # noqa: E402
from pybpe.cli import main  # noqa: E402


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """Returns 30 documents, of which every tenth one occurs twice."""
    rng = random.Random(1)
    words = sorted(set(english().split()))
    texts = [" ".join(rng.choices(words, k=300)) for _ in range(30)]
    path = tmp_path / "web.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*texts, *texts[::10]]), encoding="utf-8")
    return path


def test_languages(tmp_path: Path) -> None:
    texts = {
        "en": "The harbour was quiet when the boats came home, and nobody had waited for them.",
        "zh": "渔船回来的时候，港口很安静，岸上没有人等候他们。",
        "fr": "Le port était calme quand les bateaux sont rentrés, et personne ne les attendait.",
        "de": "Der Hafen war ruhig, als die Boote zurückkamen, und niemand hatte auf sie gewartet.",
        "ja": "船が戻ってきたとき、港は静かで、誰も待っていませんでした。",
        "ru": "Гавань была тиха, когда лодки вернулись домой, и никто их не ждал.",
    }
    for code, text in texts.items():
        for longer in (text, text * 50):
            language, confidence = corpus.detect_language(longer)
            assert language == code and 0.5 < confidence <= 1
    assert corpus.detect_language("12345 !!") == ("und", 0.0) == corpus.detect_language("")
    assert corpus.detect_language("\ud800 \x00 " + texts["fr"])[0] == "fr"
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*texts.values(), "99 !!"]), encoding="utf-8")
    report = corpus.clean(str(path), tmp_path / "out.jsonl", languages=["zh", "en"])
    assert [record["pybpe_language"] for record in records(tmp_path / "out.jsonl")] == ["en", "zh"]
    assert report.dropped == {"language": 5} and report.to_json()["languages"]["und"] == 1
    with pytest.warns(pybpe.errors.PybpeWarning, match="is empty, because no document was kept"):
        report = corpus.clean(str(path), tmp_path / "out.jsonl", languages=["zh", "en"], min_confidence=1, force=True)
    assert report.dropped == {"language": 5, "language_confidence": 2}
    with pytest.raises(pybpe.errors.ArgumentError, match="unknown language 'xx'"):
        corpus.clean(str(path), tmp_path / "out.jsonl", languages=["xx"])


def test_all_steps_by_the_command(web: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["corpus", str(web), "-o", str(tmp_path / "o.jsonl.zst"), "--normalize", "NFC", "--min-chars", "200"]
    command += [
        "--max-symbol-ratio", "0.6", "--languages", "zh,en", "--dedup", "--dedup-paragraphs", "--near-dedup", "0.8",
    ]  # fmt: skip
    assert main([*command, "--scrub-pii", "--report", str(tmp_path / "r.html")]) == 0
    assert "LSH" not in capsys.readouterr().out
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Languages" in page and "Signatures are cut into 21 bands of 6 rows" in page
    assert pybpe.train(str(tmp_path / "o.jsonl.zst"), vocab_size=300).vocab_size == 300


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_no_processes_are_left(method: str) -> None:
    """Workers exit after their parent was killed, however they were started."""
    script = (
        "import multiprocessing, os, signal, sys\nfrom pybpe.corpus.running import process_pool\n"
        f"multiprocessing.set_start_method('{method}')\n"
        "with process_pool(2) as pool:\n    print(*{f.result() for f in [pool.submit(os.getpid) for _ in range(9)]})\n"
        "    sys.stdout.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode == -9
    assert result.stdout.split()
    for worker in map(int, result.stdout.split()):
        while _lives(worker):  # at most a second
            time.sleep(0.01)


def test_a_worker_that_begins_after_its_parent_was_killed_ends() -> None:
    script = (
        "import os, signal, time\nfrom pybpe.corpus import running\nbegin = running._begin\n"
        "def late(*given):\n    time.sleep(1)\n    begin(*given)\n"
        "running._begin = late\n"
        "with running.process_pool(2):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # The workers keep the pipe open, so this returns when they have ended.
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert result.returncode == -9


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and os.path.exists(f"/proc/{process}")
