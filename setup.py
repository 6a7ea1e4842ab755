"""What pyproject.toml cannot say: the extension, the stable-ABI tag, the C library, the page of a package index, and an
sdist whose bytes do not depend on when it is built."""

import gzip
import os
import re
import runpy
import sys
import sysconfig
import tarfile
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

VERSION = runpy.run_path("pybpe/_version.py")["__version__"]
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


class BuildWithLibrary(build_py):
    """Adds the C library, pybpe.c and its headers, next to the drop-in headers."""

    def run(self) -> None:
        super().run()
        folder = Path("." if self.editable_mode else self.build_lib, "llmc_compat", "include")
        runpy.run_path("csrc/amalgamate.py")["write"](folder, self.distribution.get_version())


class BuildExtension(build_ext):
    """On Windows the compiler is gcc (mingw-w64), and the wheel needs python3.dll, as every Python has it."""

    def get_libraries(self, ext):
        if os.name != "nt":
            return super().get_libraries(ext)
        version = "" if not FREE_THREADED else f"{sys.version_info.minor}t"
        return [*ext.libraries, f"python3{version}"]


class ReproducibleSdist(sdist):
    """With SOURCE_DATE_EPOCH in the environment, all files of the archive have this time, and no owner."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, owner=None, group=None):
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, owner, group)

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime, member.mode = int(epoch), 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            return member

        name = f"{base_name}.tar.gz"
        with (
            open(name, "wb") as file,
            gzip.GzipFile("", "wb", mtime=int(epoch), fileobj=file) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(Path(root_dir or ".", base_dir), base_dir, filter=plain)  # in the order of their names
        return name


class WheelWithBill(bdist_wheel):
    """Adds a software bill of materials, where PEP 770 puts it."""

    def egg2dist(self, egginfo_path, distinfo_path):
        super().egg2dist(egginfo_path, distinfo_path)
        folder = Path(distinfo_path, "sboms")
        folder.mkdir()
        bill = runpy.run_path("tests/sbom.py")["written"](Path(distinfo_path, "METADATA").read_bytes())
        (folder / "pybpe.cdx.json").write_text(bill, encoding="utf-8")


def repository() -> str | None:
    """Returns the address of the repository in [project.urls] of pyproject.toml, or None."""
    found = re.search(r'^Repository = "([^"]+)"', Path("pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    return found and found[1].rstrip("/")


def index_page(readme: str, address: str | None = None, tag: str = "") -> str:
    """Returns the README for a package index, which has no other file of the repository. With the address of the
    repository, links to files and images lead there, to the files of the tag. Otherwise a link to a file becomes the
    file's name, and an image in a file is left out. Links to web addresses and to headings of the README stay."""
    if address is not None:
        with_images = re.sub(r"(!\[[^\]]*\]\(|\bsrc(?:set)?=\")(?![a-z]+:)", rf"\1{address}/raw/{tag}/", readme)
        return re.sub(r"(\]\()(?![a-z]+:|#)", rf"\1{address}/blob/{tag}/", with_images)

    def named(match: re.Match[str]) -> str:
        text, path = match[1], match[2].partition("#")[0]
        return f"`{path}`" if text in (path, f"`{path}`") else f"{text} (`{path}`)"

    without_images = re.sub(
        r"!\[[^\]]*\]\((?![a-z]+:)[^)\s]+\)\n*|<picture>.*?</picture>\n*", "", readme, flags=re.DOTALL
    )
    return re.sub(r"\[([^\]]+)\]\((?![a-z]+:|#)([^)\s]+)\)", named, without_images)


if __name__ == "__main__":
    setup(
        long_description=index_page(Path("README.md").read_text(encoding="utf-8"), repository(), f"v{VERSION}"),
        long_description_content_type="text/markdown",
        cmdclass={
            "bdist_wheel": WheelWithBill,
            "build_py": BuildWithLibrary,
            "build_ext": BuildExtension,
            "sdist": ReproducibleSdist,
        },
        # `make` sets this variable while it installs the package, and then compiles the extension itself.
        cffi_modules=[] if "PYBPE_WITHOUT_EXTENSION" in os.environ else ["csrc/cffi_build.py:ffi"],
        options={
            "bdist_wheel": {} if FREE_THREADED else {"py_limited_api": "cp310"},
            "build_ext": {"compiler": "mingw32"} if os.name == "nt" else {},
        },
    )
