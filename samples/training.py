"""Trains a sample's model, records how good it is, and checks the committed model against that."""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import torch
from transformers import PreTrainedModel

FINAL_LEARNING_RATE_SHARE: Final = 0.02
GRADIENT_NORM_LIMIT: Final = 1.0


@dataclass(frozen=True)
class TrainingRun:
    """What a training run did.

    Attributes:
        steps: optimiser steps taken.
        minutes: wall time of the training loop.
        paced_by: `steps` when only the count of steps set the learning rate, which makes the run
            repeatable; `clock` when `--minutes` was the nearer bound at any time.
    """

    steps: int
    minutes: float
    paced_by: str


@dataclass(frozen=True)
class Sample:
    """A sample: its folder, and how its model is trained.

    Attributes:
        folder: receives `model/` and `metrics.json`.
        seed: of all random numbers.
        rows_per_step: rows of each optimiser step.
        peak_learning_rate: the largest learning rate.
        warm_up_steps: steps until the learning rate is at its peak.
        weight_decay: of matrices; biases and norms have none.
    """

    folder: Path
    seed: int
    rows_per_step: int
    peak_learning_rate: float
    warm_up_steps: int
    weight_decay: float

    @property
    def model_directory(self) -> Path:
        """Returns the folder of the model's files."""
        return self.folder / "model"

    @property
    def metrics_path(self) -> Path:
        """Returns the file that the README quotes."""
        return self.folder / "metrics.json"

    def learning_rate(self, step: int, progress: float) -> float:
        """Linear warm-up, then half a cosine down to a small share of the peak.

        Args:
            step: steps taken so far.
            progress: share of the run that is done, 0 to 1.
        """
        cosine = 0.5 * (1 + math.cos(math.pi * progress))
        share = FINAL_LEARNING_RATE_SHARE + (1 - FINAL_LEARNING_RATE_SHARE) * cosine
        return self.peak_learning_rate * share * min(1.0, (step + 1) / self.warm_up_steps)

    def train(
        self,
        model: PreTrainedModel,
        next_loss: Callable[[], torch.Tensor],
        *,
        steps: int,
        minutes: float,
    ) -> TrainingRun:
        """Trains in place, printing progress, for `steps` steps or `minutes`.

        The learning rate falls with whichever of the two bounds is nearer, so that a run ended by
        the clock still ends at the small rate.

        Args:
            model: the untrained network.
            next_loss: returns the loss of the next `rows_per_step` rows.
            steps: the most optimiser steps.
            minutes: the most wall time.
        """
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(
            [
                {
                    "params": [each for each in parameters if each.dim() > 1],
                    "weight_decay": self.weight_decay,
                },
                {"params": [each for each in parameters if each.dim() == 1], "weight_decay": 0.0},
            ],
            betas=(0.9, 0.98),
            fused=True,
        )
        model.train()
        started = time.perf_counter()
        taken, smoothed, progress, paced_by = 0, 0.0, 0.0, "steps"
        while progress < 1:
            for group in optimizer.param_groups:
                group["lr"] = self.learning_rate(taken, progress)
            loss = next_loss()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, GRADIENT_NORM_LIMIT)
            optimizer.step()
            taken += 1
            smoothed = loss.item() if taken == 1 else 0.98 * smoothed + 0.02 * loss.item()
            elapsed_minutes = (time.perf_counter() - started) / 60
            progress = max(taken / steps, elapsed_minutes / minutes)
            if progress > taken / steps:
                paced_by = "clock"
            if taken % 100 == 0 or progress >= 1:
                rate = taken * self.rows_per_step / (elapsed_minutes * 60)
                print(
                    f"step {taken}/{steps}  loss {smoothed:.3f}  {rate:,.0f} rows/s  "
                    f"{elapsed_minutes:.1f} min",
                    flush=True,
                )
        return TrainingRun(taken, round(elapsed_minutes, 1), paced_by)

    def record(
        self,
        run: TrainingRun,
        held_out: Any,
        model: PreTrainedModel,
        *,
        packages: Sequence[str],
        **details: int,
    ) -> None:
        """Writes metrics.json, and prints it.

        Args:
            run: what the training did.
            held_out: a dataclass of measurements.
            model: the trained network.
            packages: packages whose versions matter.
            **details: further numbers of the training.
        """
        metrics = {
            "training": asdict(run) | details | {"seed": self.seed},
            "held_out": asdict(held_out),
            "parameters": model.num_parameters(),
            "versions": {"python": platform.python_version()}
            | {package: version(package) for package in packages},
        }
        self.metrics_path.write_text(json.dumps(metrics, indent=2) + "\n")
        print(self.metrics_path.read_text(), flush=True)

    def check(self, held_out: Any, **tolerance: float) -> int:
        """Compares measurements of the committed model with metrics.json; returns 0 if equal.

        Args:
            held_out: a dataclass of measurements.
            **tolerance: of `math.isclose`, because another processor sums in another order.
        """
        recorded = json.loads(self.metrics_path.read_text())["held_out"]
        measured = asdict(held_out)
        print(json.dumps(measured, indent=2))
        same = all(math.isclose(measured[name], recorded[name], **tolerance) for name in recorded)
        print("as recorded" if same else f"recorded: {json.dumps(recorded)}")
        return 0 if same else 1


def argument_parser(description: str, *, steps: int, minutes: float) -> argparse.ArgumentParser:
    """Returns the options that every trainer has.

    Args:
        description: the trainer's docstring, whose first line is shown.
        steps: optimiser steps if the command line does not say.
        minutes: upper bound on training time if the command line does not say.
    """
    parser = argparse.ArgumentParser(description=description.split("\n", 1)[0])
    parser.add_argument(
        "--steps", type=int, default=steps, help=f"optimiser steps (default {steps})"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=minutes,
        help=f"upper bound on training time (default {minutes:g})",
    )
    parser.add_argument(
        "--check", action="store_true", help="measure the committed model instead of training"
    )
    return parser
