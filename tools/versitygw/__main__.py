"""`python -m tools.versitygw`, or `make versitygw`."""

import os
import sys
from collections.abc import Mapping

from tools.installs import exit_status
from tools.versitygw import VERSITYGW


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Builds the server where it is missing; returns the exit status.

    It is 69 where this machine cannot have the server, and 1 after any other problem.

    Args:
        environ: the user's variables: PATH, HOME or XDG_CACHE_HOME, and Go's own variables.
    """
    return exit_status(
        lambda: f"versitygw {VERSITYGW.version} is in {VERSITYGW.build(environ).parent}"
    )


if __name__ == "__main__":
    sys.exit(main())
