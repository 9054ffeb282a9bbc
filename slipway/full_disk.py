"""Errors of a disk that nothing more can be written to: the user can make room."""

import errno
import os
import re
import shutil
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import UserError

_NUMBERS = {"ENOSPC": errno.ENOSPC, "EDQUOT": errno.EDQUOT, "EROFS": errno.EROFS}


def no_room_problem(error: BaseException, shown: str | None = None) -> UserError | None:
    """Returns what the user can do if nothing more can be written; None for any other error.

    An error of Node has the name of its number in its text. `shown` is the file's name in messages.
    """
    where, number = shown or "a file", None
    if isinstance(error, OSError):
        # tempfile tries to write into each folder, and says no more than that none can be used.
        no_temporary = isinstance(error, FileNotFoundError) and "temporary" in str(error.strerror)
        number = errno.ENOSPC if no_temporary else error.errno
        where = shown or error.filename or where
    elif named := re.search("|".join(_NUMBERS), str(error)):
        number = _NUMBERS[named[0]]
    if number is None or number not in _NUMBERS.values():
        return None
    rooms = " and ".join(
        f"{shutil.disk_usage(folder).free / 1e6:,.1f} MB in {folder}"
        for folder in dict.fromkeys((Path.cwd(), Path.home()))
    )
    remedy = f"Make room, and run the command again. There are {rooms} free."
    if number == errno.EROFS:
        remedy = "Run the command where it may write, for example in a copy of the project."
    reason = getattr(error, "strerror", None) or os.strerror(number)
    return UserError.of(Code.NO_DISK_SPACE, f"{where} cannot be written: {reason}", remedy)
