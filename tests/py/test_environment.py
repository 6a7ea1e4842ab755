"""The files that a command writes do not depend on the language, the encoding or the time zone of the system."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import COMMANDS, arguments, clear, written
from selection import one_in

USUAL = {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", "TZ": "UTC", "PYTHONHASHSEED": "1"}
# With these, Python reads file names, its arguments and the text of files without a stated encoding as ASCII.
UNUSUAL = {
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONIOENCODING": "ascii",
    "TZ": "Pacific/Kiritimati",
    "PYTHONHASHSEED": "2",
    "COLUMNS": "20",
}


@pytest.mark.parametrize("name", one_in(6, COMMANDS))
def test_the_environment_changes_nothing(place: Path, name: str) -> None:
    found = []
    for environment in (USUAL, UNUSUAL):
        clear(place)
        done = subprocess.run(
            [sys.executable, "-m", "pybpe", *arguments(COMMANDS[name])],
            cwd=place,
            env={**os.environ, "TMPDIR": str(place / "tmp"), **environment},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        found.append(written(place))
    assert found[0] == found[1]
    assert any(path.startswith("out/") for path in found[0])
