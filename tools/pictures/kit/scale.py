"""Axes: from values to pixels, with ticks at round numbers."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """A linear axis that begins at zero.

    Args:
        end: the value at its end, a tick.
        step: from one tick to the next.
        start_pixel: where zero is.
        end_pixel: where `end` is.
    """

    end: float
    step: float
    start_pixel: float
    end_pixel: float

    def at(self, value: float) -> float:
        """Returns where a value is."""
        return self.start_pixel + (self.end_pixel - self.start_pixel) * value / self.end

    def ticks(self) -> list[float]:
        """Returns the round values, with zero and the end."""
        return [self.step * index for index in range(round(self.end / self.step) + 1)]

    def label(self, tick: float) -> str:
        """Returns a tick's value, with as many decimals as the step has."""
        if tick == 0:
            return "0"
        decimals = max(0, -math.floor(math.log10(self.step) + 1e-9))
        return f"{tick:,.{decimals}f}"


def scale(greatest: float, *, start_pixel: float, end_pixel: float, most_ticks: int = 6) -> Scale:
    """Returns an axis from zero to the first round number that is not less than all values."""
    power = 10.0 ** math.floor(math.log10(greatest / most_ticks))
    step = next(
        power * factor for factor in (1, 2, 5, 10) if power * factor * most_ticks >= greatest - 1e-9
    )
    count = math.ceil(greatest / step - 1e-9)
    return Scale(step * count, step, start_pixel, end_pixel)
