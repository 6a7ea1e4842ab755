"""What several threads share gives each of them the same results, also in free-threaded Python. mutable_state.md
lists everything that changes, and test_mutable_state.py compares that list with the source."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy
import pytest
from gpt2 import gpt2_tokenizer
from texts import chinese, english, mixed

import pybpe
from llmc_compat.shards import write_shard
from pybpe._lazy import cached_property

TEXT = english()[:40_000] + chinese()[:4_000] + mixed()[:4_000] + "<|endoftext|>" * 3
CUSTOM = r"(?<=x)y+|\p{L}+|\s+|."  # a look-behind does not compile: the package `regex` runs it
BASE = pybpe.train(iter([TEXT]), vocab_size=700, special_tokens=["<|endoftext|>", "<|pad|>"])


def fresh(pattern: str = "gpt2") -> pybpe.Tokenizer:
    """Returns a tokenizer whose caches are empty."""
    return pybpe.Tokenizer(BASE.model.vocab, BASE.merges, special_tokens=BASE.special_tokens, pattern=pattern)


USES: dict[str, Callable[[pybpe.Tokenizer], object]] = {
    "encode": lambda tok: tok.encode(TEXT),
    "encode some specials": lambda tok: tok.encode(TEXT, allowed_special={"<|pad|>"}, disallowed_special=()),
    "encode_to_numpy": lambda tok: tok.encode_to_numpy(TEXT.encode()).tolist(),
    "encode_batch": lambda tok: tok.encode_batch([TEXT[:900], TEXT], num_threads=2),
    "count": lambda tok: tok.count(TEXT),
    "decode": lambda tok: tok.decode(BASE.encode(TEXT), skip_special_tokens=True),
    "vocab": lambda tok: tok.model.vocab,
    "merges": lambda tok: tok.merges,
    "equality": lambda tok: (hash(tok), tok == BASE),
    "token_to_id": lambda tok: [tok.token_to_id(text) for text in ("<|pad|>", " the", "e", "no such token")],
    "model": lambda tok: (list(tok.model.tokens), list(tok.model.merges), tok.model.aliases),
}


def together(threads: int, call: Callable[[int], object]) -> list[object]:
    """Returns call(0), call(1), ..., which threads start at the same moment."""
    barrier = threading.Barrier(threads)

    def start(i: int) -> object:
        barrier.wait()
        return call(i)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(start, range(threads)))


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["gpt2", r"\p{L}+|\s+|[^\p{L}\s]+", CUSTOM], ids=["built in", "compiled", "regex"])
@pytest.mark.filterwarnings("ignore:.*does not compile")
def test_threads_that_make_the_same_thing_first(pattern: str) -> None:
    """Eight threads use a tokenizer that nobody has used before, all in the same way at the same moment."""
    expected = {name: use(fresh(pattern)) for name, use in USES.items()}
    for name, use in USES.items():
        tok = fresh(pattern)
        assert together(8, lambda _, tok=tok, use=use: use(tok)) == [expected[name]] * 8, name


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL")
def test_the_extension_leaves_the_gil_off() -> None:
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined,unused-ignore]


# ---------------------------------------------------------------------------------------------------
# GPT-2's tokenizer in threads and processes, interrupted, and with each instruction set

TEXTS = [english()[:300_000], chinese(), mixed(), "<|endoftext|>" * 50 + "x" * 3000]
GPT2 = gpt2_tokenizer()


_TURNS = """
import sys, threading
from llmc_compat.shards import DataLoader

loader = DataLoader(sys.argv[1], 1, 4, should_shuffle=True)
expected = loader.next_batch()[0].tolist()

def work(call):
    for _ in range(500):
        call()

calls = [loader.next_batch] * 2 + [lambda: loader.seek(3 * loader.batches_per_epoch)] * 4
threads = [threading.Thread(target=work, args=(call,)) for call in calls]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
loader.seek(0)
assert loader.next_batch()[0].tolist() == expected
"""


def test_threads_take_turns_with_a_data_loader(tmp_path: Path) -> None:
    """One thread may rewind the loader while others read."""
    for i in range(3):
        write_shard(tmp_path / f"{i}.bin", numpy.arange(5000, dtype="u2"))
    subprocess.run([sys.executable, "-c", _TURNS, str(tmp_path / "*.bin")], check=True)


def test_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads cannot start if memory is limited or Python is exiting. Work that needs no threads runs without them."""
    text = "x" * 20_000_000  # a word that takes long, and another thread, so that Ctrl-C is answered
    expected = GPT2.count(text)

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert GPT2.count(text) == len(GPT2.encode(text)) == expected
    for call in (
        lambda: GPT2.encode_batch(TEXTS, num_threads=4),
        lambda: pybpe.train(iter(TEXTS), vocab_size=300, workers=4, progress=False),
    ):
        with pytest.raises(pybpe.errors.WorkerError, match="can't start new thread: use fewer workers than 4"):
            call()
    assert GPT2.encode_batch(TEXTS, num_threads=1) == [GPT2.encode(text) for text in TEXTS]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_get_the_same_ids(method: str) -> None:
    """The tokenizer reaches the processes as a pickle, or unchanged by a fork."""
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(GPT2.encode, TEXTS) == [GPT2.encode(text) for text in TEXTS]


@pytest.mark.slow
def test_a_fork_while_other_threads_encode() -> None:
    expected = [GPT2.encode(text) for text in TEXTS]
    stop = threading.Event()
    started = threading.Barrier(5)

    def work(text: str) -> None:
        GPT2.encode(text)
        started.wait()
        while not stop.is_set():
            GPT2.encode_to_numpy(text * 5)

    threads = [threading.Thread(target=work, args=(text,)) for text in TEXTS]
    for thread in threads:
        thread.start()
    started.wait()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                equal = [GPT2.encode(text) for text in TEXTS] == expected
                equal = equal and GPT2.encode_batch(TEXTS, num_threads=2) == expected
                os._exit(0 if equal else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert [GPT2.encode(text) for text in TEXTS] == expected


FIRST_ARRAYS = """
import sys, threading
import pybpe
assert "numpy" not in sys.modules
tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [])
threads = int(sys.argv[1])
barrier, failures = threading.Barrier(threads), []

def call(i):
    barrier.wait()
    try:
        if i % 2:
            assert tok.encode_batch_to_numpy(["ab"] * 9)[0].tolist() == [97, 98] * 9
        else:
            assert tok.encode_to_numpy("ab").tolist() == [97, 98]
    except BaseException as error:
        failures.append(repr(error))

running = [threading.Thread(target=call, args=(i,)) for i in range(threads)]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
import numpy
assert not failures and numpy.arange(3).sum() == 3, failures
"""


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 4])
def test_threads_that_make_the_first_array(threads: int) -> None:
    """numpy is imported by whichever thread comes first, by C or by Python, and is whole afterward."""
    for _ in range(24):
        subprocess.run([sys.executable, "-c", FIRST_ARRAYS, str(threads)], check=True)


IMPORTED = """
import builtins, sys
import pybpe
tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [])
error, find, names = eval(sys.argv[1]), builtins.__import__, []

def find_or_fail(name, *others, **named):
    names.append(name)
    if error is not None and name == "numpy":
        raise error
    return find(name, *others, **named)

builtins.__import__ = find_or_fail
if error is not None:
    try:
        tok.encode_to_numpy("ab")
    except BaseException as raised:
        assert raised is error, raised
    else:
        raise AssertionError("no error")
    error = None
assert names[:1] in ([], ["numpy"]), names
assert tok.encode_to_numpy("ab").tolist() == [97, 98]
assert names[0] == "numpy", names
"""


@pytest.mark.parametrize("error", ["None", "KeyboardInterrupt()", "MemoryError()", "DeprecationWarning('as an error')"])
def test_an_error_while_the_first_array_imports_numpy(error: str) -> None:
    """It is the caller's, and the next array is made. `numpy` is imported before any module in it."""
    subprocess.run([sys.executable, "-c", IMPORTED, error], check=True)


class Slow:
    computing, wait = threading.Event(), threading.Event()

    @cached_property
    def value(self) -> int:
        self.computing.set()
        self.wait.wait()
        return 1


def test_a_fork_while_a_thread_computes_what_is_kept() -> None:
    """functools.cached_property of Python 3.11 would wait in the child for a lock of the other thread."""
    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    Slow.computing.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        Slow.wait.set()
        os._exit(Slow().value - 1)
    Slow.wait.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


IMPORTED_SLOWLY = """
import time
from test_threads import Slow
Slow.computing.set()
time.sleep(0.3)
"""


def test_a_fork_while_a_thread_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child would wait for the import of a thread that it does not have."""
    (tmp_path / "imported_slowly.py").write_text(IMPORTED_SLOWLY)
    monkeypatch.syspath_prepend(tmp_path)
    Slow.computing.clear()
    thread = threading.Thread(target=import_module, args=("imported_slowly",))
    thread.start()
    Slow.computing.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        import_module("imported_slowly")
        os._exit(0)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


FIRST_USES = """
import copy, pickle, sys, threading
import pybpe
names = sys.argv[2].split()
if sys.argv[1]:
    tok = pybpe.Tokenizer.from_file(sys.argv[1])
else:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)} | {256: b"hi"}, [(b"h", b"i")], ["<s>"])
text = "hi there <s>" * 50
calls = dict(
    encode=lambda i: tok.encode("hi<s>"), array=lambda i: tok.encode_to_numpy("hi<s>").tolist(),
    batch=lambda i: tok.encode_batch(["hi", "a<s>", text] * 9), count=lambda i: tok.count(text),
    decode=lambda i: tok.decode([104, 105, 256], skip_special_tokens=True),
    pickle=lambda i: pickle.loads(pickle.dumps(tok)) == tok, deepcopy=lambda i: copy.deepcopy(tok).encode("hi<s>"),
    save=lambda i: tok.save(f"{sys.argv[3]}{i}.json"), hf=lambda i: tok.to_hf().encode("hi").ids,
)
barrier, found, failures = threading.Barrier(len(names)), [None] * len(names), []

def call(i):
    barrier.wait()
    found[i] = calls[names[i]](i)

threading.excepthook = lambda args: failures.append(repr(args.exc_value))
threads = [threading.Thread(target=call, args=(i,)) for i in range(len(names))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
assert found == [calls[name](i) for i, name in enumerate(names)]
"""


@pytest.mark.slow
def test_first_uses_in_several_threads(tmp_path: Path) -> None:
    BASE.save(tmp_path / "tok.json")
    names = "encode array batch count decode pickle deepcopy save hf".split()
    pairs = random.Random(7).sample(list(combinations_with_replacement(names, 2)), 8)
    for pair, threads, file in product(pairs, (1, 2), ("", str(tmp_path / "tok.json"))):
        command = [sys.executable, "-c", FIRST_USES, file, " ".join(pair * threads), str(tmp_path / "saved")]
        subprocess.run(command, check=True, timeout=60)


def test_values_that_are_kept_are_one_object() -> None:
    for _ in range(20):
        tok = fresh()
        first, *others = together(4, lambda _, tok=tok: tok.merges)
        assert all(other is first for other in others)


INTERRUPTED = """
import os, signal, sys, threading
import numpy, pybpe
sys.path.insert(0, sys.argv[1])
from gpt2 import gpt2_tokenizer
tok = gpt2_tokenizer()
data = {text} * (20_000_000 // len({text}))
text, ids = data.decode(), tok.encode_to_numpy(data)
listed = ids.tolist()
calls = dict(
    encode=lambda: tok.encode(text), encode_bytes=lambda: tok.encode(data),
    encode_to_numpy=lambda: tok.encode_to_numpy(data), count=lambda: tok.count(text),
    threads=lambda: tok.encode_to_numpy(data, num_threads=2), batch=lambda: tok.encode_batch([text, text]),
    decode=lambda: tok.decode(ids), decode_list=lambda: tok.decode(listed), decode_bytes=lambda: tok.decode_bytes(ids),
)
for name, call in calls.items():
    timer = threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT])
    try:
        timer.start()
        while True:
            call()
    except KeyboardInterrupt:
        print(name)
    assert tok.encode("Hello world") == [15496, 995] and tok.decode([15496, 995]) == "Hello world"
assert numpy.array_equal(tok.encode_to_numpy(data), ids) and tok.decode(ids) == text
print("usable")
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", [b"Some words, again. ", b"a"], ids=["words", "one word"])
def test_ctrl_c(text: bytes) -> None:
    """Each call raises KeyboardInterrupt, and the tokenizer still works."""
    script = textwrap.dedent(INTERRUPTED).format(text=text)
    command = [sys.executable, "-c", script, os.path.dirname(__file__)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    names = "encode encode_bytes encode_to_numpy count threads batch decode decode_list decode_bytes usable"
    assert done.stdout.split() == names.split(), done.stderr
