"""The recorded output of `make demo`, which the picture of the demo shows."""

from pathlib import Path

TRANSCRIPT = Path(__file__).parent / "demo.txt"
