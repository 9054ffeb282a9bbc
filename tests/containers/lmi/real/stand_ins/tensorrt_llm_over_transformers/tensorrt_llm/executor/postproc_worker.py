"""What makes answers of results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True)
class PostprocArgs:
    """What every maker of answers is told; the handler fills in the last two."""

    first_iteration: bool = True
    num_prompt_tokens: int | None = None
    tokenizer: Any = None


@dataclass(kw_only=True)
class PostprocParams:
    """A maker of answers and what it is told."""

    post_processor: Callable[[Any, Any], Any]
    postproc_args: PostprocArgs
