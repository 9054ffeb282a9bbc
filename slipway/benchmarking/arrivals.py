"""When the requests of an open loop are sent: a Poisson process, a constant rate, or a trace."""

import itertools
import random
from collections.abc import Iterable
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError, relative
from slipway.request_times import REMEDY, read_requests


def poisson_arrivals(rate: float, seconds: float, seed: int) -> list[float]:
    """Returns the times of all requests in seconds, from 0; the same for the same seed."""
    generator = random.Random(seed)  # noqa: S311  # of an experiment, not of a secret
    gaps = (generator.expovariate(rate) for _ in itertools.count())
    return _until(seconds, itertools.accumulate(gaps))


def constant_arrivals(rate: float, seconds: float) -> list[float]:
    """Returns the times of requests that are equally far apart, from 0."""
    return _until(seconds, (number / rate for number in itertools.count()))


def _until(end: float, times: Iterable[float]) -> list[float]:
    return list(itertools.takewhile(lambda at: at < end, times))


def read_trace(path: Path, root: Path) -> list[float]:
    """Returns the times of a trace, moved so that the first request is sent at 0.

    The file is as `read_requests` takes it, without periods. Nothing is sent in a gap.
    """
    shown = relative(path, root)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            times = read_requests(file, shown, Code.BENCH_INPUT, has_periods=False).seconds
    except (OSError, UnicodeDecodeError) as error:
        message = f"the trace cannot be read: {getattr(error, 'strerror', None) or error}"
        problem = Problem(Code.BENCH_INPUT, Kind.VALUE, message, REMEDY, location=Location(shown))
        raise UserError([problem]) from None
    return [at - times[0] for at in times]
