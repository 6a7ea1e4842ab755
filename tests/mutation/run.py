"""Mutation testing: puts small faults into the C library, one at a time, and counts how many the C tests notice.

    make mutants [count=50] [seed=1] [known=1] [files="csrc/json/json.c ..."]

A fault (operators.py) is noticed if a test program (programs.py) fails, crashes, or takes five times as long as it
should. Faults that do not compile or do not change the object code are drawn again. The run fails if a fault survives
that no file of survivors/ lists. Each line there gives the reason: most such faults change only speed or the size of a
table.

There are too many faults to judge all of them. known=1 draws only from those that have been judged and that are not
listed, so each must be noticed; CI draws from these. They are in the files of judged.txt: `json.c 6` means that one in
six of its faults has been judged, chosen by a hash of the line and the change. A new line may thus bring in a fault
that must be judged. What is drawn depends on the sources and the seed, and on nothing else: a change of one line leaves
the other faults as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import math
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from operators import Mutant, mutants
from programs import BUILD, ROOT, Library

HERE = Path(__file__).parent
# Code for other machines, and code that is generated.
LEFT_OUT = {"pretok_neon.c", "pretok_avx2.c", "pretok_avx512.c", "pretok_swar.c"}


@dataclass(frozen=True)
class Drawn:
    """A fault that was drawn.

    Attributes:
        path: the source's path, in csrc or pybpe.
        source: its text.
        mutant: the fault.
    """

    path: Path
    source: str
    mutant: Mutant

    @property
    def file(self) -> str:
        """What lists call the file: a source of csrc by its name, which no other has, and a module by its path."""
        return self.path.name if self.path.suffix == ".c" else self.path.as_posix()

    @property
    def name(self) -> str:
        """What lists of survivors call it: the file, the line's text, and the change."""
        line = self.source.splitlines()[self.mutant.line - 1].strip()
        change = self.mutant.describe(self.source).partition(": ")[2]
        return f"{self.file}: {line}: {change}"

    def is_known(self, judged: dict[str, int]) -> bool:
        """Returns whether the fault has been judged. `judged` is judged_files()."""
        one_of = judged.get(self.file, 0)
        return one_of > 0 and int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], "little") % one_of == 0

    def judge(self, library: Library, slowest: float) -> str:
        """Returns "invalid", "noticed by TEST", or "survived"."""
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            return library.judge(self.path, self.mutant.apply(self.source), self.mutant.line, Path(folder), slowest)


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser of the arguments that the runs for C and for Python share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50, help="of faults (default 50)")
    parser.add_argument("--seed", default="1", help="which faults are drawn")
    parser.add_argument("--known", action="store_true", help="only faults that have been judged and must be noticed")
    parser.add_argument("--workers", type=int, default=2)
    return parser


def draw(folder: Path, files: list[Path], faults: Callable[[str], list[Mutant]], seed: str, known: bool) -> list[Drawn]:
    """Returns the faults of the sources in a folder, or those that must be noticed, in an order that `seed` gives."""
    sources = {path: (folder / path).read_text(encoding="utf-8") for path in files}
    drawn = [Drawn(path, source, fault) for path, source in sources.items() for fault in faults(source)]
    if known:
        files_judged, may_survive = judged_files(), survivors()
        drawn = [one for one in drawn if one.is_known(files_judged) and one.name not in may_survive]
    if not drawn:
        raise SystemExit("there is no fault to draw: known=1 draws only from files that judged.txt lists")
    return sorted(drawn, key=lambda one: hashlib.sha256(f"{seed} {one.name}".encode()).digest())


def listed(*paths: Path) -> list[str]:
    """Returns the lines of lists, without comments."""
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return [line.rsplit(" # ", 1)[0] for line in lines if line and not line.startswith("#")]


def survivors() -> set[str]:
    """Returns the names of the faults that may survive."""
    return set(listed(*(HERE / "survivors").rglob("*.txt")))


def judged_files() -> dict[str, int]:
    """Returns for each file of judged.txt how many faults there are for one that has been judged."""
    return {name: int(one_of) for name, one_of in map(str.split, listed(HERE / "judged.txt"))}


def judged(
    library: Library, drawn: list[Drawn], count: int, workers: int, slowest: float
) -> Iterator[tuple[Drawn, str]]:
    """Yields `count` faults that change the object code, with what became of each."""
    waiting: deque[tuple[Drawn, Future[str]]] = deque()
    rest = iter(drawn)
    with ThreadPoolExecutor(workers) as pool:
        while count > 0:
            for one in itertools.islice(rest, 4 * workers - len(waiting)):
                waiting.append((one, pool.submit(one.judge, library, slowest)))
            if not waiting:
                return
            one, job = waiting.popleft()
            if job.result() != "invalid":
                yield one, job.result()
                count -= 1
        pool.shutdown(cancel_futures=True)


def interval(part: int, total: int) -> tuple[float, float]:
    """Returns Wilson's 95% interval of a proportion, in percent."""
    z, share = 1.96, part / total
    middle = share + z * z / (2 * total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return tuple(100 * (middle + side * half) / (1 + z * z / total) for side in (-1, 1))


def report(found: Iterable[tuple[Drawn, str]], known: set[str], places: int) -> int:
    """Prints what became of each fault, and the score. Returns the exit code: 1 if one survived that is not known."""
    results: Counter[str] = Counter()
    for one, result in found:
        kind = "noticed" if result != "survived" else "listed" if one.name in known else "SURVIVED"
        results[kind] += 1
        shown = result if kind == "noticed" else kind
        print(f"{shown}: {one.path.as_posix()}:{one.mutant.line}: {one.name.partition(': ')[2]}", flush=True)
    real = results["noticed"] + results["SURVIVED"]
    share, (low, high) = 100 * results["noticed"] / real, interval(results["noticed"], real)
    print(f"{results.total()} faults, drawn from {places}: {dict(results)}")
    print(f"{share:.1f}% of those not listed were noticed (95% interval {low:.1f} to {high:.1f})")
    return 1 if results["SURVIVED"] else 0


def main() -> int:
    """Runs the command line."""
    parser = arguments(__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="default: all of csrc")
    parser.add_argument("--slowest", type=float, default=math.inf, help="seconds of the slowest test program to run")
    args = parser.parse_args()
    files = [path.resolve() for path in args.files] or sorted((ROOT / "csrc").glob("*/*.c"))
    names = [path.relative_to(ROOT / "csrc") for path in files if path.name not in LEFT_OUT]
    drawn = draw(ROOT / "csrc", names, mutants, args.seed, args.known)
    found = judged(Library.build(), drawn, args.count, args.workers, args.slowest)
    return report(found, survivors(), len(drawn))


if __name__ == "__main__":
    sys.exit(main())
