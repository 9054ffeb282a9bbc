"""Runs the embedded AWS in the foreground.

`python -m slipway.embedded_aws --port 4566 --directory DIR`
"""

import argparse
import contextlib
import json
import logging
import os
import secrets
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.embedded_aws.containers.engine import Engine, NoEngineError
from slipway.embedded_aws.control import DEFAULT_PORT
from slipway.embedded_aws.errors import LocalAwsError
from slipway.embedded_aws.lock import held_lock
from slipway.embedded_aws.reported_refusals import ReportedRefusal
from slipway.errors import UserError
from slipway.image_sources import SOURCES_FOLDER

if TYPE_CHECKING:
    from slipway.embedded_aws.server import EmbeddedAws


def main(arguments: list[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m slipway.embedded_aws", description=__doc__)
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0: any free port")
    parser.add_argument("--directory", type=Path, required=True, help="for models, logs, the lock")
    parser.add_argument(
        "--sources", type=Path, default=SOURCES_FOLDER, help="with the images' package `containers`"
    )
    parser.add_argument("--project", type=Path, help="with the programs that configs name")
    parser.add_argument("--containers", action="store_true", help="run endpoints in their images")
    parser.add_argument(
        "--refuse",
        action="append",
        default=[],
        type=ReportedRefusal,
        choices=list(ReportedRefusal),
        help="refuse what public reports saw refused; may be repeated",
    )
    for option, meaning in (
        ("--without-capacity", "have no capacity of this instance type; may be repeated"),
        ("--record", "record resources of this type without making any; may be repeated"),
    ):
        parser.add_argument(option, action="append", default=[], metavar="TYPE", help=meaning)
    parser.add_argument("--ready-file", type=Path, help="written when it answers")
    options = parser.parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    stops = (signal.SIGTERM, signal.SIGINT)
    # Blocked before any thread exists, so that every thread leaves them to sigwait below.
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    options.directory.mkdir(parents=True, exist_ok=True)
    # Models, requests and answers are the user's alone.
    options.directory.chmod(0o700)
    try:
        with held_lock(options.directory):
            _serve(options, stops)
    except (LocalAwsError, UserError) as error:
        print(error, file=sys.stderr)
        return os.EX_UNAVAILABLE if isinstance(error, NoEngineError) else 1
    return 0


def _serve(options: argparse.Namespace, stops: tuple[signal.Signals, ...]) -> None:
    port: int = options.port
    ready_file: Path | None = options.ready_file
    if ready_file is not None:
        # Left by an earlier process. Removed, because its presence means that this process answers.
        ready_file.unlink(missing_ok=True)
    # Imported after the lock: importing moto takes a second, which a second process should not pay.
    from slipway.embedded_aws.containers.opening import engine_directory, open_engine
    from slipway.embedded_aws.hosting.families import programs
    from slipway.embedded_aws.server import EmbeddedAws

    with contextlib.ExitStack() as stack:
        # Ends after the server, whose containers it runs.
        engine = None
        if options.containers:
            engine = stack.enter_context(open_engine(engine_directory(os.environ)))
        try:
            server = EmbeddedAws(
                port=port,
                secret_access_key=secrets.token_urlsafe(30),
                directory=options.directory,
                programs=programs(options.sources),
                engine=engine,
                refused=options.refuse,
                without_capacity=options.without_capacity,
                project=options.project,
                recorded=options.record,
            )
        except OSError as error:
            raise LocalAwsError(
                f"Cannot listen on port {port}: {os.strerror(error.errno or 0)}. "
                "Choose another port."
            ) from error
        stack.enter_context(server)
        logging.getLogger("slipway.embedded_aws").info("listening at %s", server.connection.url)
        if ready_file is not None:
            _write_state(ready_file, server, engine, options)
        signal.sigwait(stops)
        logging.getLogger("slipway.embedded_aws").info("stopping")


def _write_state(
    ready_file: Path,
    server: "EmbeddedAws",
    engine: Engine | None,
    options: argparse.Namespace,
) -> None:
    state = {
        "pid": os.getpid(),
        "port": server.port,
        "url": server.connection.url,
        "secret_access_key": server.connection.secret_access_key,
        "engine": None if engine is None else engine.name,
        "refused": sorted(set(options.refuse)),
        "without_capacity": sorted(set(options.without_capacity)),
        "recorded": sorted(set(options.record)),
        "started_at": datetime.now(UTC).isoformat(),
    }
    # Renamed into place, so that nobody who waits for the file reads half of it.
    partial = ready_file.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    # The secret is the user's alone.
    partial.touch(0o600)
    partial.write_text(json.dumps(state))
    partial.replace(ready_file)


if __name__ == "__main__":
    sys.exit(main())
