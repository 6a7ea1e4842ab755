# The extension module that csrc/cffi_build.py builds from csrc/pybpe.h.
from typing import Any

ffi: Any
lib: Any
