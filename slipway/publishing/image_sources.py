"""Which files make each container image, and their fingerprint.

The fingerprint is the image's tag: a change elsewhere in the repository changes no image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from slipway.errors import UserError

# Container family -> the folders and files under the project that its image takes.
IMAGE_SOURCES: Mapping[str, Sequence[str]] = {
    "tensorrt": ("containers/__init__.py", "containers/serving", "containers/tensorrt"),
}

_LEFT_OUT = frozenset({"__pycache__"})
# ECR tags have 128 characters at most; 16 hexadecimal digits tell any two builds apart.
_TAG_LENGTH = 16


def image_files(root: Path, family: str) -> list[Path]:
    """Lists an image's source files in a fixed order.

    Raises:
        UserError: the project lacks one of the sources.
    """
    files: list[Path] = []
    for source in IMAGE_SOURCES[family]:
        path = root / source
        if path.is_file():
            files.append(path)
        elif path.is_dir():
            files.extend(
                found
                for found in path.rglob("*")
                if found.is_file() and _LEFT_OUT.isdisjoint(found.relative_to(root).parts)
            )
        else:
            raise UserError.of(
                f"{source} is missing, a source of the {family} image", "Restore it with git."
            )
    return sorted(files, key=lambda file: file.relative_to(root).as_posix())


def image_digest(root: Path, family: str) -> str:
    """Fingerprints an image's sources: the paths and bytes of its files, nothing of the machine."""
    digest = hashlib.sha256()
    for file in image_files(root, family):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{content}  {file.relative_to(root).as_posix()}\n".encode())
    return digest.hexdigest()[:_TAG_LENGTH]
