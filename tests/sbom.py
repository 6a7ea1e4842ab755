"""Writes a software bill of materials next to each wheel: python tests/sbom.py WHEEL...

WHEEL.cdx.json is in the format CycloneDX 1.6. It says what the wheel is (its hash, its license), what it contains
from other projects (Unicode's tables; nothing else), and which packages pip installs with it. All facts are from the
wheel's own metadata and from the headers in csrc/, so the same wheel gives the same file. `make release-check` runs it.
setup.py puts the same into the wheel, without its hash.
"""

import hashlib
import json
import os
import re
import sys
import uuid
import zipfile
from datetime import datetime, timezone
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from time import time as now
from typing import Any

CSRC = Path(__file__).resolve().parents[1] / "csrc"
REQUIREMENT = re.compile(r"([\w.-]+)(\[[^]]*\])?\s*([^;]*)(?:;\s*(.*))?")


def read_metadata(wheel: Path) -> Message:
    """Returns the METADATA file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]*\.dist-info/METADATA", name))
        return message_from_bytes(archive.read(name))


def unicode_tables() -> list[dict[str, Any]]:
    """Returns the versions of the Unicode Character Database from which the tables in csrc/ were made."""
    made = []
    for header, use in (("unicode/unicode_data.h", "patterns"), ("unicode/normalize_data.h", "normalizers")):
        text = (CSRC / header).read_text(encoding="utf-8")
        found = re.search(r'UNICODE_VERSION "([\d.]+)"', text)
        if found is None:
            raise ValueError(f"csrc/{header} does not state its version of Unicode")
        made.append(
            {
                "type": "data",
                "bom-ref": f"unicode-{use}",
                "name": "Unicode Character Database",
                "version": found[1],
                "description": f"tables for {use}: csrc/{header}",
                "licenses": [{"license": {"id": "Unicode-3.0"}}],
            }
        )
    return made


def requirements(metadata: Message) -> list[dict[str, Any]]:
    """Returns the packages that pip installs with the wheel, without extras. pip chooses their versions."""
    made = []
    for line in metadata.get_all("Requires-Dist") or []:
        match = REQUIREMENT.fullmatch(line)
        assert match is not None, line
        name, _, versions, marker = match.groups()
        if "extra ==" not in (marker or ""):
            condition = [{"name": "pybpe:condition", "value": marker.strip()}] if marker else []
            made.append(
                {
                    "type": "library",
                    "bom-ref": f"pkg:pypi/{name}",
                    "name": name,
                    "purl": f"pkg:pypi/{name}",
                    "scope": "required",
                    "properties": [{"name": "pybpe:versions", "value": versions.strip()}, *condition],
                }
            )
    return made


def bill(metadata: Message, wheel: Path | None = None) -> dict[str, Any]:
    """Returns the bill of materials of a wheel with this metadata: one for the wheel itself, or one about the wheel."""
    this, hashes = f"pkg:pypi/{metadata['Name']}@{metadata['Version']}", []
    if wheel is not None:
        this += f"?file_name={wheel.name}"
        hashes = [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]
    tables, packages = unicode_tables(), requirements(metadata)
    made = wheel.stat().st_mtime if wheel is not None else now()
    time = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", made)), timezone.utc)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{this}#{hashes}')}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": this,
                "name": metadata["Name"],
                "version": metadata["Version"],
                "description": metadata["Summary"],
                **({"hashes": hashes} if hashes else {}),
                "licenses": [{"license": {"id": metadata["License-Expression"]}}],
                "purl": this,
                "components": tables,
            },
        },
        "components": packages,
        "dependencies": [
            {"ref": this, "dependsOn": [package["bom-ref"] for package in packages]},
            *({"ref": package["bom-ref"], "dependsOn": []} for package in packages),
        ],
    }


def written(metadata: bytes) -> str:
    """Returns the text of the bill of materials for a wheel with this METADATA file."""
    return json.dumps(bill(message_from_bytes(metadata)), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: sbom.py WHEEL...", file=sys.stderr)
        return 2
    for wheel in map(Path, sys.argv[1:]):
        text = json.dumps(bill(read_metadata(wheel), wheel), indent=2, ensure_ascii=False) + "\n"
        wheel.with_name(wheel.name + ".cdx.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
