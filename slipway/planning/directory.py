"""A directory of the user's that a family checks before it is published."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from slipway.errors import FieldPath, Problem
from slipway.planning.plan import PlanWarning

LARGEST_TEXT_BYTES = 1_000_000
"""Size of the largest file that a check reads."""


@dataclass(frozen=True)
class PublishedDirectory:
    """A directory of the project that is published as it is.

    Args:
        field: the config's field that names it.
        path: relative to the project.
        target: what it runs on, or `any`.
    """

    field: FieldPath
    path: str
    target: str


@dataclass(frozen=True)
class Directory:
    """The files of a directory: their names, sizes, and the content of those that are texts.

    Args:
        path: the directory, relative to the project.
        field: the config's field that names it.
        sizes_bytes: of each file, by its path within the directory.
        texts: content of the files that the family reads, unless they are larger than
            `LARGEST_TEXT_BYTES`.
        empty: directories without a file in them or below.
        pointers: files that are pointers of Git LFS.
    """

    path: str
    field: FieldPath
    sizes_bytes: Mapping[str, int]
    texts: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    empty: Sequence[str] = ()
    pointers: Collection[str] = ()


@dataclass(frozen=True)
class DirectoryFindings:
    """What a check found.

    Args:
        problems: what has to be put right before the directory is published.
        warnings: what a reviewer may want to know.
        backends: Triton's back ends that the models need, and do not bring.
    """

    problems: Sequence[Problem] = ()
    warnings: Sequence[PlanWarning] = ()
    backends: Sequence[str] = ()
