"""What the commands share that install a program for the tests, such as `make versitygw`."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from slipway.embedded_aws import cache


class InstallError(Exception):
    """The program cannot be installed; the message says why."""


class NoHomeError(InstallError):
    """Nothing says where programs are kept."""

    def __init__(self) -> None:
        super().__init__("Set HOME or XDG_CACHE_HOME: neither says where programs are kept.")


class UnavailableError(InstallError):
    """This machine cannot have the program, whatever a user changes in the project."""


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Returns the directory that keeps such programs; raises `NoHomeError`."""
    found = cache.cache_directory(environ)
    if found is None:
        raise NoHomeError
    return found


def exit_status(install: Callable[[], str]) -> int:
    """Installs, prints the line or the `InstallError` of it, and returns the exit status.

    The status is EX_UNAVAILABLE, 69, where this machine cannot have the program. It is 1 after any
    other problem.
    """
    try:
        print(install())
    except InstallError as error:
        print(error, file=sys.stderr)
        return os.EX_UNAVAILABLE if isinstance(error, UnavailableError) else 1
    return 0
