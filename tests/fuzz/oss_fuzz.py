"""Builds the fuzz targets as OSS-Fuzz does, with tests/fuzz/oss-fuzz/build.sh, and runs each of them.

    python tests/fuzz/oss_fuzz.py

Sets the variables that OSS-Fuzz's base images set for libFuzzer and each sanitizer of project.yaml. Each target first
runs its seeds, and then fuzzes for a second with its options. Needs clang with libFuzzer.
"""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "tests/fuzz/oss-fuzz"
# As in the base images of OSS-Fuzz.
COMMON = "-O1 -fno-omit-frame-pointer -gline-tables-only -Wno-error"
SANITIZERS = {
    "address": "-fsanitize=address -fsanitize-address-use-after-scope",
    "undefined": "-fsanitize=array-bounds,bool,builtin,enum,function,integer-divide-by-zero,null,object-size,return,"
    "returns-nonnull-attribute,shift,signed-integer-overflow,unreachable,vla-bound,vptr "
    "-fno-sanitize-recover=array-bounds,bool,builtin,enum,function,integer-divide-by-zero,null,object-size,return,"
    "returns-nonnull-attribute,shift,signed-integer-overflow,unreachable,vla-bound,vptr",
    "memory": "-fsanitize=memory -fsanitize-memory-track-origins",
}


def build(sanitizer: str, work: Path) -> Path:
    """Returns $OUT."""
    folders = {name: work / name.lower() for name in ("SRC", "WORK", "OUT")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    (folders["SRC"] / "pybpe").symlink_to(ROOT)
    flags = f"{COMMON} {SANITIZERS[sanitizer]} -fsanitize=fuzzer-no-link"
    environment = {**os.environ, **{name: str(folder) for name, folder in folders.items()}}
    environment |= {"CC": "clang", "CXX": "clang++", "CFLAGS": flags, "CXXFLAGS": flags, "SANITIZER": sanitizer}
    environment |= {"LIB_FUZZING_ENGINE": "-fsanitize=fuzzer"}
    subprocess.run([PROJECT / "build.sh"], env=environment, check=True)
    return folders["OUT"]


def options_of(out: Path, target: str) -> list[str]:
    """Returns the target's options as arguments. Paths in them are relative to $OUT."""
    parser = configparser.ConfigParser()
    parser.read(out / f"{target}.options")
    options = dict(parser["libfuzzer"])
    if "dict" in options:
        options["dict"] = str(out / options["dict"])
    return [f"-{name}={value}" for name, value in options.items()]


def run(out: Path, target: str) -> None:
    """Runs a target on its seeds, and then for a second."""
    seeds = out / f"{target}_seeds"
    with zipfile.ZipFile(out / f"{target}_seed_corpus.zip") as archive:
        archive.extractall(seeds)
    limits = ["-runs=0"], ["-max_total_time=1"]
    for limit in limits:
        command = [str(out / target), *limit, *options_of(out, target), "-seed=1", str(seeds)]
        subprocess.run(command, check=True, cwd=out, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def main() -> int:
    """See above."""
    names = (line.strip(" -") for line in (PROJECT / "project.yaml").read_text(encoding="utf-8").splitlines())
    wanted = sys.argv[1:] or [name for name in names if name in SANITIZERS]
    targets = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("fuzz_*.c"))
    for sanitizer in wanted:
        # Not in build/: the link to the project would make the project contain itself.
        with tempfile.TemporaryDirectory(prefix="pybpe-oss-fuzz-") as work:
            out = build(sanitizer, Path(work))
            for target in targets:
                try:
                    run(out, target)
                except subprocess.CalledProcessError as err:
                    print(f"{target} with {sanitizer}: {err}\n{err.stderr.decode(errors='replace')[-4000:]}")
                    return 1
        print(f"{sanitizer}: {len(targets)} targets, 0 findings", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
