"""Work in Python that nobody waits for any more ends in the middle. Each program would go on for ever otherwise."""

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import CancelledError

import pytest

import pybpe
from pybpe import parallel

THREADS = """
import threading
from pybpe.parallel import end_if_unwanted, map_ordered

endless = threading.Event()

def work(item):
    while item > 0:
        endless.set()
        end_if_unwanted()

try:
    for _ in map_ordered(work, range(100), 2):
        endless.wait()
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""

PROCESSES = """
import multiprocessing, os, signal, time
from pybpe.corpus.processes import process_pool

try:
    with process_pool(2) as pool:
        pool.submit(int).result()
        futures = [pool.submit(time.sleep, 1e6) for _ in range(9)]
        STOP
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("interrupted", 1 + len(multiprocessing.active_children()))
"""


FORKING = """
import multiprocessing, os, signal
from pybpe.corpus.processes import process_pool

multiprocessing.set_start_method("fork")
os.register_at_fork(after_in_parent=lambda: signal.raise_signal(signal.SIGINT))
try:
    with process_pool(2) as pool:
        print("lost")
except KeyboardInterrupt:
    print("interrupted", 1 + len(multiprocessing.active_children()))
"""

# A process that is stopped does not hear SIGTERM.
STOPPED = PROCESSES.replace("STOP", "os.kill(multiprocessing.active_children()[0].pid, signal.SIGSTOP)")


@pytest.mark.parametrize(
    "program",
    [THREADS, PROCESSES.replace("STOP", ""), STOPPED, FORKING],
    ids=["threads", "processes", "stopped", "forking"],
)
def test_workers_end_with_the_call(program: str) -> None:
    """At once, and none is left."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (result.stdout, result.returncode) == ("interrupted 1\n", 0), result.stderr


def test_a_pattern_of_ones_own_stops_within_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], pattern=r"\w+|\W")
    stop = threading.Event()
    monkeypatch.setattr(parallel._thread, "stop", stop, raising=False)
    assert len(tok.encode("some text")) == 9
    stop.set()
    with pytest.raises(CancelledError):
        tok.encode("some text")
