"""What pyproject.toml cannot say: the cffi extension and the wheel's stable-ABI tag."""

import sysconfig

from setuptools import setup

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

setup(
    cffi_modules=["csrc/cffi_build.py:ffi"],
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp310"}},
)
