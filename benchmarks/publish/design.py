"""Defines the measurements, their goals and their order."""

from dataclasses import dataclass, replace
from enum import StrEnum

from benchmarks.trials import rounds_of

MEGABYTE = 1_000_000
GIGABYTE = 1_000_000_000


class Work(StrEnum):
    """The work that is measured."""

    LARGE = "large files"
    SMALL = "small files"
    UNCHANGED = "nothing changed"
    PREFIX = "large prefix"

    @property
    def is_upload(self) -> bool:
        """Returns whether files are sent to an empty bucket."""
        return self in (Work.LARGE, Work.SMALL)

    @property
    def model(self) -> str:
        """Returns the name of the model whose files they are."""
        return self.value.replace(" ", "-")


class Way(StrEnum):
    """A program that does the work."""

    PUBLISH = "slipway publish"
    COPY = "s5cmd cp"
    SYNC = "aws s3 sync"


@dataclass(frozen=True)
class Size:
    """The files of a work.

    Args:
        file_count: their number.
        file_bytes: the size of each.
    """

    file_count: int
    file_bytes: int

    @property
    def total_bytes(self) -> int:
        """Returns their size together."""
        return self.file_count * self.file_bytes


@dataclass(frozen=True)
class Cell:
    """The subject of one measurement."""

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
MOST_SECONDS = 1.0
"""Goal of a publish that sends nothing."""


@dataclass(frozen=True)
class Design:
    """The whole plan of a run; the same values give the same order.

    Args:
        sizes: the files of each work.
        trials: measurements of each cell.
        seed: seed of the order.
        is_quick: whether the run only tests the program, so that its figures mean nothing.
    """

    sizes: dict[Work, Size]
    trials: int
    seed: int
    is_quick: bool = False

    def rounds(self) -> list[list[Cell]]:
        """Returns the cells in the order in which they run, every cell once a round."""
        return rounds_of(CELLS, lambda _cell: self.trials, self.seed)

    @property
    def disk_bytes(self) -> int:
        """Returns the space that the files take, at the source and in the bucket."""
        # The files of the prefix are sparse.
        sizes = [size for work, size in self.sizes.items() if work is not Work.PREFIX]
        return 2 * sum(size.total_bytes for size in sizes)


def full_design(*, large: Size, small: Size, prefix: Size, trials: int, seed: int) -> Design:
    """Returns the design of `make bench-publish`.

    Args:
        large: few large files.
        small: many small files, which are also published without a change.
        prefix: the files that are listed and not sent.
        trials: measurements of each cell.
        seed: seed of the order.
    """
    sizes = {
        Work.LARGE: large,
        Work.SMALL: small,
        Work.UNCHANGED: small,
        Work.PREFIX: prefix,
    }
    return Design(sizes, trials, seed)


def quick(design: Design) -> Design:
    """Returns a design that goes through everything in little time; its figures mean nothing."""
    small = Size(20, 20_000)
    sizes = {
        Work.LARGE: Size(2, MEGABYTE),
        Work.SMALL: small,
        Work.UNCHANGED: small,
        Work.PREFIX: Size(5, GIGABYTE),
    }
    return replace(design, sizes=sizes, trials=2, is_quick=True)
