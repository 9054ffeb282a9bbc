"""A program that writes its log as JSON lines to standard output, and reads words from a test."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60


class LoggingProgram:
    def __init__(self, *arguments: str, environment: Mapping[str, str], cwd: Path = ROOT) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=cwd,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def until(self, event: str) -> dict[str, Any]:
        """Reads the log up to an event."""
        assert self.process.stdout is not None
        seen: list[dict[str, Any]] = []
        for line in self.process.stdout:
            seen.append(json.loads(line))
            if seen[-1]["event"] == event:
                return seen[-1]
        raise AssertionError(f"the log ended without {event}: {seen}")

    def tell(self, word: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def end(self) -> int:
        """Waits for the end; returns the exit code."""
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def kill(self) -> None:
        self.process.kill()
        # It closes the pipes, and waits for the end.
        self.process.__exit__(None, None, None)
