"""Defines the measurements and their goals."""

from dataclasses import dataclass
from enum import StrEnum

MEGABYTE = 1_000_000
GIGABYTE = 1_000_000_000


class Work(StrEnum):
    LARGE = "large files"
    SMALL = "small files"
    UNCHANGED = "nothing changed"
    PREFIX = "large prefix"

    @property
    def is_upload(self) -> bool:
        return self in (Work.LARGE, Work.SMALL)

    @property
    def model(self) -> str:
        return self.value.replace(" ", "-")


class Way(StrEnum):
    PUBLISH = "slipway publish"
    COPY = "s5cmd cp"
    SYNC = "aws s3 sync"


@dataclass(frozen=True)
class Size:
    file_count: int
    file_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.file_count * self.file_bytes


@dataclass(frozen=True)
class Cell:
    work: Work
    way: Way

    def __str__(self) -> str:
        return f"{self.work}, {self.way}"


CELLS = (
    *(Cell(work, way) for work in (Work.LARGE, Work.SMALL) for way in Way),
    Cell(Work.UNCHANGED, Way.PUBLISH),
    Cell(Work.PREFIX, Way.PUBLISH),
)
"""In the order of the report."""

LEAST_RATIOS = {Way.COPY: 0.9, Way.SYNC: 2.0}
"""Goals of an upload: least multiple of the other program's throughput."""
MOST_SECONDS = 1.0  # goal of a publish that sends nothing


@dataclass(frozen=True)
class Design:
    trials: int
    seed: int
    is_quick: bool
    sizes: dict[Work, Size]

    @property
    def disk_bytes(self) -> int:
        """Returns the space that the files take, at the source and in the bucket."""
        # The files of the prefix are sparse.
        sizes = [size for work, size in self.sizes.items() if work is not Work.PREFIX]
        return 2 * sum(size.total_bytes for size in sizes)
