"""Fits the constants of the roofline: robust least squares, held near what is plausible."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.sizing.rows import Row
from slipway.sizing.latency import Constants, request_times

Vector = npt.NDArray[np.float64]

# Each pair of model and instance type weighs as so many rows, however many it has: rows of one pair
# err together.
_ROWS_OF_A_PAIR = 6
# What one row errs by, by itself: noise between runs.
_NOISE = 0.07
# From so many times that on, a row counts as disturbed.
_FAR = 2.0
_STEP, _MOST_STEPS, _MOST_TRIES, _ENOUGH = 1e-4, 30, 8, 1e-4
_GPUS = (
    "NVIDIA A10G",
    "NVIDIA L40S",
    "NVIDIA RTX PRO Server 6000",
    "NVIDIA A100",
    "NVIDIA H200",
)


class Prior(NamedTuple):
    """The plausible value of a constant, before the fit reads any row."""

    value: float
    spread: float  # standard deviation of its logarithm
    meaning: str  # for the page


PRIORS: Mapping[str, Prior] = {
    "bandwidth_use": Prior(0.88, 0.05, "part of the memory's bandwidth that weights are read at"),
    **{
        f"bandwidth_use of {gpu}": Prior(1.0, 0.12, "the same on this GPU, relative to all")
        for gpu in _GPUS
    },
    "compute_use": Prior(0.6, 0.25, "part of the peak arithmetic"),
    "cache_use": Prior(1.0, 0.3, "speed of reading keys and values, relative to weights"),
    "expert_use": Prior(1.0, 0.05, "speed of reading experts, relative to other weights"),
    "mxfp4_use": Prior(
        1.0,
        0.4,
        "the same of experts in mxfp4; above 1 where tokens of a batch choose the same experts",
    ),
    "unpacked_mxfp4_use": Prior(1.0, 1.2, "the same on GPUs before Ada, which unpack them"),
    "unpacked_mxfp4_launch": Prior(1.0, 1.2, "launches of such layers there"),
    "gptq_use": Prior(0.6, 0.4, "speed of reading weights in gptq, relative to plain weights"),
    "gptq_compute": Prior(0.5, 0.4, "arithmetic with weights in gptq, relative to plain weights"),
    "gptq_launch": Prior(1.4, 0.2, "launches of a layer in gptq, relative to plain weights"),
    "launch_seconds_vllm": Prior(5e-5, 0.3, "launches of a layer in vLLM, in seconds"),
    "launch_seconds_experts": Prior(12e-5, 0.5, "the same of a layer with experts"),
    "launch_seconds_tgi": Prior(5e-4, 0.4, "launches of a layer in TGI, in seconds"),
    **{
        f"launch_seconds of {gpu}": Prior(1.0, 0.25, "the same beside this GPU, relative to all")
        for gpu in ("NVIDIA A10G", "NVIDIA A100")
    },
    "pcie_seconds": Prior(4e-5, 0.2, "one all-reduce of four GPUs over PCIe, in seconds"),
    "pcie_bytes_per_second": Prior(16e9, 0.4, "what all GPUs send together through the host"),
    "nvlink_seconds": Prior(1e-5, 0.4, "one all-reduce over NVLink, in seconds"),
    "nvlink_bytes_per_second": Prior(150e9, 0.3, "what one GPU sends over NVLink"),
    "step_seconds": Prior(5e-4, 0.5, "scheduling of a step, in seconds"),
    "batch_seconds": Prior(1e-3, 0.5, "what vLLM adds to a step with more than one request"),
    "sequence_seconds": Prior(2e-5, 0.5, "what each request adds to a step, in seconds"),
    "request_seconds": Prior(0.03, 0.5, "network and endpoint around a request, in seconds"),
}


def predicted_seconds(row: Row, constants: Constants) -> float:
    return request_times(row.network, row.server, row.load, constants).request


def fit(rows: Sequence[Row]) -> Constants:
    """Returns the constants for which rows and plausible values together err least."""
    names = list(PRIORS)
    centre = np.log([PRIORS[name].value for name in names])
    spread = np.array([PRIORS[name].spread for name in names])
    count = {row.pair: sum(each.pair == row.pair for each in rows) for row in rows}
    weight = np.array([np.sqrt(_ROWS_OF_A_PAIR / count[row.pair]) / _NOISE for row in rows])
    measured = np.log([row.seconds for row in rows])

    def residuals(point: Vector) -> Vector:
        constants = _named(names, point)
        predicted = np.log([predicted_seconds(row, constants) for row in rows])
        far = _bounded((predicted - measured) * weight)
        return np.concatenate([far, (point - centre) / spread])

    found = _least_squares(residuals, centre)
    return {name: float(f"{value:.3g}") for name, value in _named(names, found).items()}


def _bounded(distances: Vector) -> Vector:
    """Returns distances whose squares grow linearly far out (pseudo-Huber loss).

    One disturbed run then does not decide for all others.
    """
    size = np.sqrt(1 + (distances / _FAR) ** 2) - 1
    bounded: Vector = np.sign(distances) * _FAR * np.sqrt(2 * size)
    return bounded


def _named(names: Sequence[str], point: Vector) -> Constants:
    return dict(zip(names, np.exp(point).tolist(), strict=True))


def _least_squares(residuals: Callable[[Vector], Vector], start: Vector) -> Vector:
    point, damping = start, 1.0
    error = residuals(point)
    for _ in range(_MOST_STEPS):
        slopes = [(residuals(point + _STEP * one) - error) / _STEP for one in np.eye(len(point))]
        jacobian = np.array(slopes).T
        normal, gradient = jacobian.T @ jacobian, jacobian.T @ error
        for _ in range(_MOST_TRIES):
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
            after = residuals(point + step)
            if after @ after < error @ error:
                break
            damping *= 4
        else:
            return point
        gain = error @ error - after @ after
        point, error, damping = point + step, after, damping / 4
        if gain < _ENOUGH * (error @ error):
            break
    return point
