"""Slipway's own code as a wheel: the same code gives the same bytes.

A build needs only what publishing imports. The format:
https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
"""

import base64
import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import slipway

# Folders below the package that publishing does not import. The images' sources are the project's.
_LEFT_OUT = frozenset({"cdk", "image_sources/containers", "new_project", "stacks"})
_SUFFIXES = (".py", ".json", ".md", ".typed")
# The earliest that ZIP files can have.
_MOMENT = (1980, 1, 1, 0, 0, 0)
_INFO = f"slipway-{slipway.__version__}.dist-info"
WHEEL = f"slipway-{slipway.__version__}-py3-none-any.whl"


def wheel() -> bytes:
    package = Path(slipway.__file__).parent
    files = {}
    # In a checkout some folders are links.
    for folder, folders, names in os.walk(package, followlinks=True):
        inside = Path(folder).relative_to(package)
        folders[:] = [name for name in folders if (inside / name).as_posix() not in _LEFT_OUT]
        for path in (Path(folder, name) for name in names):
            if path.suffix in _SUFFIXES:
                files[path.relative_to(package.parent).as_posix()] = path.read_bytes()
    files[f"{_INFO}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: slipway\nVersion: {slipway.__version__}\n"
    ).encode()
    files[f"{_INFO}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: slipway\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = [f"{name},{_hash(content)},{len(content)}" for name, content in sorted(files.items())]
    files[f"{_INFO}/RECORD"] = "\n".join([*record, f"{_INFO}/RECORD,,", ""]).encode()
    return zipped(files)


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Returns a ZIP file; the same files give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _hash(content: bytes) -> str:
    digest = hashlib.sha256(content).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
