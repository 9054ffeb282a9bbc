"""Reads the lock file of a model."""

from pathlib import Path

from pydantic import ValidationError

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError, relative
from slipway.planning.lock import Lock


def read_lock(path: Path, root: Path, name: str) -> Lock:
    """Returns a model's lock; an empty one where nothing was published.

    Args:
        path: of the file, which need not exist.
        root: the project.
        name: of the model.

    Raises:
        UserError: the file is not a lock.
    """

    def refused(message: str, remedy: str) -> UserError:
        place = Location(relative(path, root))
        code, kind = Code.LOCK_UNREADABLE, Kind.SHAPE
        return UserError([Problem(code, kind, message, remedy, location=place)])

    try:
        return Lock.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Lock()
    except OSError as error:
        message = f"the lock file cannot be read: {error.strerror}"
        raise refused(message, "Restore it with git.") from None
    except ValidationError as error:
        found = "; ".join(
            f"{'.'.join(map(str, detail['loc'])) or 'file'}: {detail['msg']}"
            for detail in error.errors(include_url=False)
        )
        remedy = f"Restore it with git, or delete it and run `slipway publish {name}`."
        raise refused(f"not a lock file: {found}", remedy) from None
