"""Reads what is committed beside a model's config: its lock, and its kept measurement."""

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from slipway.codes.code import Code
from slipway.config.sections.base import Section
from slipway.errors import Kind, Location, Problem, UserError, relative
from slipway.planning.lock import Lock
from slipway.sizing.measured import Measurement

SectionT = TypeVar("SectionT", bound=Section)


def read_lock(path: Path, root: Path, name: str) -> Lock:
    """Returns a model's lock, empty if nothing was published; raises `UserError` if it is none."""
    remedy = f"Restore it with git, or delete it and run `slipway publish {name}`."
    return _read(Lock, path, root, "lock", Code.LOCK_UNREADABLE, remedy) or Lock()


def read_measurement(path: Path, root: Path) -> Measurement | None:
    """Returns a model's kept measurement; None without one; raises `UserError` if it is none."""
    remedy = "Restore it with git, or delete it and keep a run with `slipway bench --keep`."
    return _read(Measurement, path, root, "measurement", Code.MEASUREMENT_UNREADABLE, remedy)


def _read(
    kind: type[SectionT], path: Path, root: Path, noun: str, code: Code, remedy: str
) -> SectionT | None:
    def refused(message: str, remedy: str) -> UserError:
        place = Location(relative(path, root))
        return UserError([Problem(code, Kind.SHAPE, message, remedy, location=place)])

    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"the {noun} file cannot be read: {error.strerror}"
        raise refused(message, "Restore it with git.") from None
    except ValidationError as error:
        found = "; ".join(
            f"{'.'.join(map(str, detail['loc'])) or 'file'}: {detail['msg']}"
            for detail in error.errors(include_url=False)
        )
        raise refused(f"not a {noun} file: {found}", remedy) from None
