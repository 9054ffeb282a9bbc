"""`python -m tools.djl_serving [VERSION ...]`, or `make djl-serving`."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from slipway.embedded_aws.hosting.families.lmi.djl_serving import (
    is_home,
    servers_directory,
)
from tools.djl_serving.build import RELEASES, SOURCE, build, find_programs
from tools.installs import NoHomeError, exit_status


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.djl_serving",
        description="Build DJL Serving from its sources, for the embedded AWS and the tests.",
    )
    known = ", ".join(RELEASES)
    parser.add_argument(
        "versions", nargs="*", metavar="VERSION", help=f"of {known}; by default all"
    )
    parser.add_argument(
        "--source", default=SOURCE, help="git repository to fetch from (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if unknown := [version for version in options.versions if version not in RELEASES]:
        parser.error(f"cannot build {', '.join(unknown)}; can build {known}")
    return exit_status(
        lambda: _install(options.versions or list(RELEASES), options.source, environ)
    )


def _install(versions: Sequence[str], source: str, environ: Mapping[str, str]) -> str:
    directory = servers_directory(environ)
    if directory is None:
        raise NoHomeError
    missing = [version for version in versions if not is_home(directory / version)]
    if missing:
        find_programs()
    for version in missing:
        build(version, directory, source)
    return "\n".join(f"DJL Serving {version}: is in {directory / version}" for version in versions)


if __name__ == "__main__":
    sys.exit(main())
