"""What pyproject.toml cannot say: the extension, the stable-ABI tag, the C library, the page of a package index."""

import re
import runpy
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


class BuildWithLibrary(build_py):
    """Adds the C library as two files, pybpe.c and pybpe.h, next to the drop-in headers."""

    def run(self) -> None:
        super().run()
        folder = Path("." if self.editable_mode else self.build_lib, "llmc_compat", "include")
        runpy.run_path("csrc/amalgamate.py")["write"](folder, self.distribution.get_version())


def index_page(readme: str) -> str:
    """Returns the README for a package index, which has no other file of the repository: a link to a file becomes the
    file's name. Links to web addresses and to headings of the README stay."""

    def named(match: re.Match[str]) -> str:
        text, path = match[1], match[2].partition("#")[0]
        return f"`{path}`" if text in (path, f"`{path}`") else f"{text} (`{path}`)"

    return re.sub(r"\[([^\]]+)\]\((?![a-z]+:|#)([^)\s]+)\)", named, readme)


if __name__ == "__main__":
    setup(
        long_description=index_page(Path("README.md").read_text(encoding="utf-8")),
        long_description_content_type="text/markdown",
        cmdclass={"build_py": BuildWithLibrary},
        cffi_modules=["csrc/cffi_build.py:ffi"],
        options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp310"}},
    )
