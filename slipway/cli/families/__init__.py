"""The commands of single serving families: one module each."""

from collections.abc import Callable, Sequence
from typing import Final

import typer

from slipway.cli.families import triton

REGISTER: Final[Sequence[Callable[[typer.Typer], None]]] = (triton.register,)
"""Each adds the commands of a family."""
