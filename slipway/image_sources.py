"""Which files make each container image, and their fingerprint.

The fingerprint is in the image's tag: a change elsewhere in the repository changes no image.
"""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import UserError

# Container family -> the folders and files under the project that its image takes.
IMAGE_SOURCES: Mapping[str, Sequence[str]] = {
    "tensorrt": (
        "containers/__init__.py",
        "containers/jobs",
        "containers/serving",
        "containers/tensorrt",
    ),
    "neuron": (
        "containers/__init__.py",
        "containers/jobs",
        "containers/serving",
        "containers/neuron",
    ),
    "lmi": ("containers/lmi/Dockerfile", "containers/lmi/handler"),
    "triton": (
        "containers/__init__.py",
        "containers/jobs",
        "containers/serving",
        "containers/tensorrt",
        "containers/triton",
    ),
}

# Lists of packages, from which the pinned lists in the images are made. Everything else is in an
# image: the image that compiles is built from the same files, with their fingerprint in its tag.
_NOT_IN_IMAGE = ".in"
_CACHES = frozenset({"__pycache__"})
# ECR tags have 128 characters at most; 16 hexadecimal digits tell any two builds apart.
_TAG_LENGTH = 16


def image_files(root: Path, family: str) -> list[Path]:
    """Lists an image's source files in a fixed order; hidden files are an editor's.

    Raises:
        UserError: the project lacks one of the sources.
    """
    files: list[Path] = []
    for source in IMAGE_SOURCES[family]:
        path = root / source
        if path.is_file():
            files.append(path)
        elif path.is_dir():
            files.extend(found for found in path.rglob("*") if _is_source(found, root))
        else:
            raise UserError.of(
                Code.IMAGE_SOURCE_MISSING,
                f"{source} is missing, a source of the {family} image",
                "Restore it with git.",
            )
    return sorted(files, key=lambda file: file.relative_to(root).as_posix())


def image_digest(root: Path, family: str) -> str:
    """Fingerprints an image's sources: the paths and bytes of its files, nothing of the machine."""
    digest = hashlib.sha256()
    for file in image_files(root, family):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{content}  {file.relative_to(root).as_posix()}\n".encode())
    return digest.hexdigest()[:_TAG_LENGTH]


def copy_image_files(root: Path, family: str, destination: Path) -> None:
    """Copies an image's source files, with their paths under the project, into a folder.

    Args:
        root: the project.
        family: the container family, a key of `IMAGE_SOURCES`.
        destination: folder that receives the files.
    """
    for file in image_files(root, family):
        target = destination / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def _is_source(path: Path, root: Path) -> bool:
    relative = path.relative_to(root)
    return (
        path.is_file()
        and _CACHES.isdisjoint(relative.parts)
        and not any(part.startswith(".") for part in relative.parts)
        and path.suffix != _NOT_IN_IMAGE
    )
