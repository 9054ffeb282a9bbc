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
    """A directory of the project that is published as it is, for a target or `any`."""

    field: FieldPath
    path: str
    target: str


@dataclass(frozen=True)
class Directory:
    """The files of a directory: their sizes by path, and the content of those that are texts.

    Texts larger than `LARGEST_TEXT_BYTES` are left out. `empty` directories have no file in them or
    below, and `pointers` are files that are pointers of Git LFS.
    """

    path: str
    field: FieldPath
    sizes_bytes: Mapping[str, int]
    texts: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    empty: Sequence[str] = ()
    pointers: Collection[str] = ()


@dataclass(frozen=True)
class DirectoryFindings:
    """What a check found; `backends` are Triton's that the models need, and do not bring."""

    problems: Sequence[Problem] = ()
    warnings: Sequence[PlanWarning] = ()
    backends: Sequence[str] = ()
