"""`python -m tools.djl_serving [VERSION ...]`, or `make djl-serving`."""

import argparse
import functools
import os
import sys
import time
from collections.abc import Mapping, Sequence

from embedded_aws.hosting.families.lmi.djl_serving import home_in, is_home, servers_directory
from tools.djl_serving.build import (
    RELEASES,
    SOURCE,
    BuildError,
    UnreachableError,
    build,
    find_programs,
)


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Builds the missing servers; returns the exit status.

    The status is EX_UNAVAILABLE, 69, if the sources are out of reach, which no change here can
    help, and 1 for any other problem.

    Args:
        arguments: versions to build; None reads the command line.
        environ: the user's variables: HOME or XDG_CACHE_HOME.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    unknown = [version for version in options.versions if version not in RELEASES]
    if unknown:
        parser.error(f"cannot build {', '.join(unknown)}; can build {', '.join(RELEASES)}")
    directory = servers_directory(environ)
    if directory is None:
        print("Neither HOME nor XDG_CACHE_HOME says where servers are kept.", file=sys.stderr)
        return 1
    missing = []
    for version in options.versions or RELEASES:
        if is_home(home_in(directory, version)):
            print(f"DJL Serving {version}: is in {home_in(directory, version)}")
        else:
            missing.append(version)
    try:
        if missing:
            find_programs()
        for version in missing:
            started = time.monotonic()
            home = build(version, directory, options.source, functools.partial(_tell, version))
            print(f"DJL Serving {version}: {home} ({time.monotonic() - started:.0f} s)", flush=True)
    except UnreachableError as error:
        print(
            f"{error}\nThe sources cannot be reached from here. --source names a copy of the "
            f"repository; by default it is {SOURCE}",
            file=sys.stderr,
        )
        return os.EX_UNAVAILABLE
    except BuildError as error:
        print(f"{error}\nThe sources: --source, by default {SOURCE}", file=sys.stderr)
        return 1
    return 0


def _tell(version: str, step: str) -> None:
    print(f"DJL Serving {version}: {step}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.djl_serving",
        description="Build DJL Serving from its sources, for the embedded AWS and the tests.",
    )
    parser.add_argument(
        "versions",
        nargs="*",
        metavar="VERSION",
        help=f"of {', '.join(RELEASES)}; by default all",
    )
    parser.add_argument(
        "--source", default=SOURCE, help="git repository to fetch from (default: %(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
