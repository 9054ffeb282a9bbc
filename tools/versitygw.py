"""Builds versitygw, an S3 server that is not moto: `make versitygw`."""

import os
import sys
from collections.abc import Mapping

from tools.go_programs import GoProgram
from tools.installs import exit_status

VERSITYGW = GoProgram(
    "versitygw",
    "github.com/versity/versitygw",
    "cmd/versitygw",
    "versitygw",
    ("github.com/versity/...", "github.com/valyala/...", "github.com/gofiber/..."),
)
"""The server."""


def main(environ: Mapping[str, str] = os.environ) -> int:
    return exit_status(
        lambda: f"versitygw {VERSITYGW.version} is in {VERSITYGW.build(environ).parent}"
    )


if __name__ == "__main__":
    sys.exit(main())
