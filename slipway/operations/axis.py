"""Axes of plots: from values to pixels, with ticks at round numbers."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A linear axis from zero, at `start_pixel`, to a tick; `step` is between two ticks."""

    end: float
    step: float
    start_pixel: float
    end_pixel: float

    def at(self, value: float) -> float:
        """Returns the pixel of a value."""
        return self.start_pixel + (self.end_pixel - self.start_pixel) * value / self.end

    def ticks(self) -> list[tuple[float, str]]:
        """Returns the round values from zero to the end, and their labels."""
        decimals = max(0, -math.floor(math.log10(self.step) + 1e-9))
        count = round(self.end / self.step)
        values = [self.step * index for index in range(count + 1)]
        return [(value, f"{value:,.{decimals}f}" if value else "0") for value in values]


def axis_to(greatest: float, start_pixel: float, end_pixel: float, most_ticks: int) -> Axis:
    """Returns an axis from zero to the first tick that is not less than the greatest value."""
    power = 10.0 ** math.floor(math.log10(greatest / most_ticks))
    steps = (power * factor for factor in (1, 2, 5, 10))
    step = next(step for step in steps if step * most_ticks >= greatest - 1e-9)
    return Axis(step * math.ceil(greatest / step - 1e-9), step, start_pixel, end_pixel)
