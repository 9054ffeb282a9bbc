"""`python -m tools.images [NAME ...]`, or `make images`."""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from slipway.embedded_aws.containers.engine import Engine, EngineError
from tools.images.build import build
from tools.images.catalogue import Image, catalogue, compilers
from tools.images.engine import open_engine, record
from tools.installs import InstallError, UnavailableError


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Builds images, and keeps the names of those that were built for the tests.

    Returns EX_UNAVAILABLE, 69, where this machine has no engine and can start none, and 1 if an
    image could not be built. Images whose base this machine cannot have are left out.
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
            _tell(f"The engine is {engine.name}.")
            outcomes = dict(_build_each(engine, chosen, environ, options))
    except InstallError as error:
        print(error, file=sys.stderr)
        return os.EX_UNAVAILABLE if isinstance(error, UnavailableError) else 1
    record([name for name, is_built in outcomes.items() if is_built], environ)
    return 0 if all(outcomes.values()) else 1


def _build_each(
    engine: Engine, images: Sequence[Image], environ: Mapping[str, str], options: argparse.Namespace
) -> Iterator[tuple[str, bool]]:
    """Yields the name of each image that this machine can have, and whether it was built."""
    tell = _tell if options.verbose else lambda _: None
    for number, image in enumerate(images, 1):
        _tell(f"{number} of {len(images)}: {image.name}")
        try:
            built = build(engine, image, tell, environ, may_pull=not options.stand_ins)
            if options.sbom is not None:
                # Its packages are installed with the tests, and not by `make images`.
                from tools.images.sbom import write_sbom

                write_sbom(engine, built, options.sbom)
        except UnavailableError as error:
            _tell(f"left out: {error}")
            continue
        except (InstallError, EngineError) as error:
            _tell(f"failed: {error}")
            yield image.name, False
            continue
        yield image.name, True
        own = built.size_bytes - built.base_size_bytes
        _tell(
            f"  {image.tag}: {own / 1e6:.0f} MB on {built.base_size_bytes / 1e6:.0f} MB, "
            f"{built.seconds:.0f} s\n  its base: {built.base}"
        )


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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
    parser.add_argument("--verbose", action="store_true", help="show what the builds print")
    return parser


if __name__ == "__main__":
    sys.exit(main())
