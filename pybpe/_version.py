"""The version, in one place: the build, the C library and the package all read it from here."""

__version__ = "0.1.0"
