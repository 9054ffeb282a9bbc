"""The directory in the user's cache that has what `make` installed or built for Slipway."""

from collections.abc import Mapping
from pathlib import Path


def cache_directory(environ: Mapping[str, str]) -> Path | None:
    """Returns the directory by the user's HOME or XDG_CACHE_HOME; None without both."""
    cache = environ.get("XDG_CACHE_HOME")
    if not cache and environ.get("HOME"):
        cache = str(Path(environ["HOME"], ".cache"))
    return Path(cache, "slipway") if cache else None
