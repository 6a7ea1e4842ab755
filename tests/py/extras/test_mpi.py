"""mpi4py's executor gives the same tokens and counts as threads: four ranks on this machine."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")

CODE = """
import sys
import pybpe
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor
from pybpe.reading import planning
from pybpe.training import counting

planning.TASK_BYTES = counting.RANGE_BYTES = 20_000
with MPICommExecutor(MPI.COMM_WORLD, root=0) as executor:
    if executor is not None:
        path, out = sys.argv[1:]
        tok = pybpe.train(path, vocab_size=500, special_tokens=["<|endoftext|>"], progress=False)
        given = {"documents": "line", "min_shard_tokens": 0, "progress": False}
        one = pybpe.binarize(tok, path, out + "/one", **given)
        many = pybpe.binarize(tok, path, out + "/many", executor=executor, **given)
        same = pybpe.count_words(path, executor=executor) == pybpe.count_words(path)
        print(MPI.COMM_WORLD.size, one == many, same)
"""


def test_the_tokens_are_the_same(tmp_path: Path) -> None:
    mpiexec = shutil.which("mpiexec") or str(Path(sys.executable).with_name("mpiexec"))
    if not Path(mpiexec).exists():
        pytest.skip("there is no mpiexec")
    (tmp_path / "a.txt").write_text("".join(f"line {number} of some text\n" for number in range(5000)))
    (tmp_path / "run.py").write_text(CODE)
    names = [str(tmp_path / "run.py"), str(tmp_path / "a.txt"), str(tmp_path)]
    command = [mpiexec, "-n", "4", sys.executable, *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "True", "True"]
    for path in (tmp_path / "one").glob("*.bin"):
        assert path.read_bytes() == (tmp_path / "many" / path.name).read_bytes()
