"""`python -m tools.images [NAME ...]`, or `make images`."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from embedded_aws.containers.engine import Engine, EngineError
from tools.images.build import Built, build
from tools.images.catalogue import Image, catalogue, compilers
from tools.images.engine import open_engine
from tools.images.record import record
from tools.installs import InstallError, UnavailableError


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Builds images; returns the exit status.

    The names of the images that were built are kept for the tests.

    It is EX_UNAVAILABLE, 69, where this machine has no engine and can start none. It is 1 if an
    image could not be built. Images are left out by name where this machine cannot have their base.

    Args:
        arguments: None reads the command line.
        environ: the user's variables.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    serving = list(catalogue())
    images = {image.name: image for image in (*serving, *compilers())}
    if unknown := [name for name in options.names if name not in images]:
        parser.error(f"no image is called {', '.join(unknown)}; there are {', '.join(images)}")
    # An image that compiles has PyTorch: several GB and a quarter of an hour.
    chosen = [images[name] for name in options.names] or serving
    try:
        with open_engine(environ) as engine:
            built, failures = _build_each(engine, chosen, environ, options)
    except InstallError as error:
        print(error, file=sys.stderr)
        return os.EX_UNAVAILABLE if isinstance(error, UnavailableError) else 1
    record(built, environ)
    if options.json:
        print(json.dumps([each.as_json() for each in built], indent=2))
    return 1 if failures else 0


def _build_each(
    engine: Engine, images: Sequence[Image], environ: Mapping[str, str], options: argparse.Namespace
) -> tuple[list[Built], int]:
    built: list[Built] = []
    failures = 0
    _tell(f"The engine is {engine.name}.")
    for number, image in enumerate(images, 1):
        _tell(f"{number} of {len(images)}: {image.name}")
        try:
            tell = _tell if options.verbose else _ignore
            done = build(engine, image, tell, environ, may_pull=not options.stand_ins)
        except UnavailableError as error:
            _tell(f"left out: {error}")
            continue
        except (InstallError, EngineError) as error:
            _tell(f"failed: {error}")
            failures += 1
            continue
        if options.sbom is not None and not _write_sbom(engine, done, options.sbom):
            failures += 1
        built.append(done)
        own = done.size_bytes - done.base_size_bytes
        _tell(
            f"  {image.tag}: {own / 1e6:.0f} MB on {done.base_size_bytes / 1e6:.0f} MB, "
            f"{done.seconds:.0f} s\n  its base: {done.base}"
        )
    return built, failures


def _write_sbom(engine: Engine, built: Built, directory: Path) -> bool:
    # Its packages are installed with the tests, and not by `make images`.
    from tools.images.sbom import write_sbom

    try:
        write_sbom(engine, built, directory)
    except InstallError as error:
        _tell(f"failed: {error}")
        return False
    return True


def _tell(line: str) -> None:
    # Progress goes to standard error, so that it does not mix with --json.
    print(line, file=sys.stderr, flush=True)


def _ignore(line: str) -> None:
    del line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.images", description="Build Slipway's container images."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these images")
    parser.add_argument(
        "--stand-ins", action="store_true", help="pull no base: they have several GB"
    )
    parser.add_argument(
        "--sbom", type=Path, metavar="DIR", help="write bills of materials and lists of licences"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--verbose", action="store_true", help="show what the builds print")
    return parser


if __name__ == "__main__":
    sys.exit(main())
