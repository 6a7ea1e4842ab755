#!/bin/sh
# Makes the virtual environment .venv. Before that, checks for everything that building pybpe needs, and says in one line
# each what to install: otherwise, errors come after minutes, in the middle of long logs.
#
#     sh csrc/venv.sh PYTHON CC
missing=0
lacks() {
    echo "pybpe: $1" >&2
    missing=1
}

if ! $1 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    lacks "'$1' is not Python 3.10 or newer: install python3, or choose another one with PYTHON=..."
else
    $1 -c 'import ensurepip, venv' 2>/dev/null ||
        lacks "Python's module venv is missing: install python3-venv (Debian, Ubuntu)"
    [ -f "$($1 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] ||
        lacks "Python.h is missing: install python3-dev (Debian, Ubuntu) or python3-devel (Fedora)"
fi
echo '#include <stdio.h>' | $2 -x c -fsyntax-only - 2>/dev/null ||
    lacks "'$2' does not compile C: install gcc and libc6-dev (Debian, Ubuntu), gcc (Fedora) or Xcode's tools\
 (macOS: xcode-select --install), or choose another compiler with CC=..."
[ "$missing" = 0 ] || exit 1

$1 -m venv .venv || exit 1
# tqdm is a small package that pybpe needs.
.venv/bin/python -m pip download --quiet --retries 0 --timeout 10 --no-deps --dest .venv/downloaded tqdm >/dev/null 2>&1 ||
    lacks "pip cannot download packages: connect this machine to the Internet, or name a package index that it reaches\
 with PIP_INDEX_URL=..."
exit "$missing"
