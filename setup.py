"""What pyproject.toml cannot say: the cffi extension, the wheel's stable-ABI tag, and the C library in the wheel."""

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


setup(
    cmdclass={"build_py": BuildWithLibrary},
    cffi_modules=["csrc/cffi_build.py:ffi"],
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp310"}},
)
