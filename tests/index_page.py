"""Checks the built packages' page on a package index: every link works there, and every classifier exists.

`make release-check` runs it on the sdist and the wheel.
"""

import re
import sys
import tarfile
import zipfile
from email import message_from_bytes, policy
from email.message import EmailMessage

from readme_renderer.markdown import render
from trove_classifiers import classifiers


def metadata(package: str) -> EmailMessage:
    """Reads the metadata of an sdist or a wheel."""
    if package.endswith(".whl"):
        with zipfile.ZipFile(package) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return message_from_bytes(wheel.read(name), policy=policy.default)
    with tarfile.open(package) as sdist:
        name = min((name for name in sdist.getnames() if name.endswith("/PKG-INFO")), key=len)
        content = sdist.extractfile(name)
        assert content is not None
        return message_from_bytes(content.read(), policy=policy.default)


def check(package: str) -> None:
    found = metadata(package)
    unknown = set(found.get_all("Classifier", [])) - set(classifiers)
    assert not unknown, f"{package}: these classifiers do not exist: {unknown}"
    page = render(found.get_content())
    assert page, f"{package}: the page cannot be rendered"
    names = {f"#{name}" for name in re.findall(r'\bid="([^"]+)"', page)}
    dead = [
        link for link in re.findall(r'\b(?:href|src)="([^"]*)"', page) if not (link in names or link[:8] == "https://")
    ]
    assert not dead, f"{package}: links that lead nowhere on a package index: {dead}"


for path in sys.argv[1:]:
    check(path)
    print(f"{path}: the page of a package index works")
