"""Builds versitygw, an S3 server that is not moto: `make versitygw`."""

from pathlib import Path

from tools.go_programs import GoProgram

VERSITYGW = GoProgram(
    Path(__file__).parent, "github.com/versity/versitygw", "cmd/versitygw", "versitygw", minutes=4
)
"""The server."""
