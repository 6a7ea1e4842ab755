"""Measures how long Ctrl-C takes, at random moments: interrupts.py [COUNT [OPERATION...]].

A separate process works endlessly. This one interrupts it. It reports when its KeyboardInterrupt arrived (by the clock
that both processes share), whether the operation left files, and whether training and encoding still give the same
results. Prints milliseconds, and fails if a file was left or a result changed; the reader judges the times.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, os.fspath(Path(__file__).parents[1] / "py"))

CORPUS_BYTES = 20_000_000
LONGEST_WAIT = 0.5  # seconds until the signal, from the first reads of an operation to the middle of its work


def make_corpus(path: Path) -> None:
    """English, Chinese and everything else, with distinct words throughout, so that training has much to do."""
    from texts import chinese, english, mixed

    rng = random.Random(3)
    sources = [english(), english(), chinese(20_000), mixed(100_000)]
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < CORPUS_BYTES:
            source = rng.choice(sources)
            start = rng.randrange(len(source) - 500)
            file.write(source[start : start + 500] + f" {rng.randrange(10**9):x}\n")


# ------------------------------------------------------------------------------------------------------
# The process that works


def operations(corpus: Path, out: Path) -> dict[str, Callable[[], object]]:
    """Returns each long operation, as a function without arguments."""
    import pybpe
    import pybpe.corpus

    sample = corpus.read_bytes()[:2_000_000]
    tok = pybpe.train([sample], vocab_size=4000, special_tokens=["<|endoftext|>"], progress=False)
    data = corpus.read_bytes()
    text = data.decode()
    ids = tok.encode_to_numpy(data)
    lines = text.splitlines()

    def clean() -> None:
        pybpe.corpus.clean(
            [corpus],
            out / "clean.jsonl",
            documents="line",
            dedup="normalized",
            scrub_pii=True,
            force=True,
            progress=False,
        )

    return {
        "train": lambda: pybpe.train(corpus, vocab_size=32_000, progress=False),
        "train, one worker": lambda: pybpe.train(corpus, vocab_size=32_000, workers=1, progress=False),
        "train, own pattern": lambda: pybpe.train([sample], vocab_size=4000, pattern=r"\w+|\W", progress=False),
        "encode": lambda: tok.encode(text),
        "encode_to_numpy": lambda: tok.encode_to_numpy(data),
        "encode_batch": lambda: tok.encode_batch(lines),
        "decode": lambda: tok.decode(ids),
        "binarize": lambda: pybpe.binarize(tok, corpus, out, progress=False),
        "corpus": clean,
        "binarize, a worker stopped": lambda: with_stopped_worker(
            lambda pool: pybpe.binarize(tok, corpus, out, executor=pool, progress=False)
        ),
        "count_words, a worker stopped": lambda: with_stopped_worker(
            lambda pool: pybpe.count_words(corpus, executor=pool, progress=False)
        ),
        "corpus, a worker stopped": lambda: stopping_a_child(clean),
    }


def with_stopped_worker(call: Callable[[Executor], object]) -> None:
    """A call by a pool of processes, one of which never answers: it waits until it is interrupted."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Python drops a Ctrl-C that arrives during a fork
    pool = ProcessPoolExecutor(2)
    try:
        os.kill(pool.submit(os.getpid).result(), signal.SIGSTOP)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        call(pool)
    finally:
        for process in (pool._processes or {}).values():
            process.kill()
        pool.shutdown(wait=False)


def stopping_a_child(call: Callable[[], object]) -> None:
    """A call one of whose processes stops, as soon as there is one."""
    ended = threading.Event()

    def stop() -> None:
        while not ended.wait(0.01):
            for child in multiprocessing.active_children()[:1]:
                with suppress(OSError):
                    os.kill(child.pid or 0, signal.SIGSTOP)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    try:
        call()
    finally:
        ended.set()


def check(corpus: Path) -> str:
    """Returns a digest of the results of training and encoding, which no interrupt may change."""
    import hashlib

    import pybpe

    sample = corpus.read_bytes()[:100_000]
    tok = pybpe.train([sample], vocab_size=600, progress=False)
    return hashlib.sha256(repr((tok.merges, tok.encode(sample))).encode()).hexdigest()


def work(name: str, corpus: Path, out: Path) -> None:
    """Repeatedly reports that it is ready, works until it is interrupted, and reports when that happened."""
    call = operations(corpus, out)[name]
    expected = check(corpus)
    for line in sys.stdin:
        assert line == "go\n"
        try:
            print("ready", flush=True)
            for _ in itertools.count():
                call()
        except KeyboardInterrupt:
            caught = time.monotonic()
        same = check(corpus) == expected
        left = [str(path) for path in out.rglob("*") if path.name.endswith(".tmp")]
        print(json.dumps({"caught": caught, "same": same, "left": left}), flush=True)


# ------------------------------------------------------------------------------------------------------
# The process that interrupts


def measure(name: str, corpus: Path, out: Path, count: int) -> list[float]:
    """Returns the seconds from the signal to the KeyboardInterrupt, `count` times. Raises RuntimeError if the state
    after an interrupt is wrong."""
    rng = random.Random(name)
    command = [sys.executable, __file__, "--work", name, str(corpus), str(out)]
    seconds = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        for i in range(count):
            process.stdin.write("go\n")
            process.stdin.flush()
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"{name}: interrupt {i}: the process is gone")
            time.sleep(rng.uniform(0.001, LONGEST_WAIT))
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            state = json.loads(process.stdout.readline() or "{}")
            if not state.get("same") or state["left"]:
                raise RuntimeError(f"{name}: interrupt {i}: {state or 'the process is gone'}")
            seconds.append(state["caught"] - sent)
        process.stdin.close()
    return sorted(seconds)


def main() -> int:
    """See above."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it, and its children
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.txt"
        make_corpus(corpus)
        names = sys.argv[2:] or operations(corpus, Path(folder))
        print(f"{'milliseconds':32}{'median':>8}{'p99':>8}{'most':>8}  of {count}")
        for name in names:
            out = Path(folder) / name.replace(", ", "-").replace(" ", "-")
            out.mkdir()
            try:
                seconds = measure(name, corpus, out, count)
            except RuntimeError as error:
                failed += 1
                print(error)
                continue
            p99 = seconds[-(-99 * count // 100) - 1]
            print(f"{name:32}{seconds[count // 2] * 1e3:8.1f}{p99 * 1e3:8.1f}{seconds[-1] * 1e3:8.1f}", flush=True)
    return failed != 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit(main())
