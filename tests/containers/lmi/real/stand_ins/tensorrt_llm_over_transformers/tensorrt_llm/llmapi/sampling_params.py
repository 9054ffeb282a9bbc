"""How to choose tokens."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass(kw_only=True)
class SamplingParams:
    """The fields that the protocol fills.

    TensorRT-LLM refuses with a ValueError, and the stand-in what it has not, by another error.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    truncate_prompt_tokens: int | None = None
    seed: int | None = None
    n: int = 1
    best_of: int | None = None
    min_tokens: int = 0
    min_p: float = 0.0
    stop: list[str] = field(default_factory=list)
    stop_token_ids: list[int] = field(default_factory=list)
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    use_beam_search: bool = False
    return_context_logits: bool = False

    def __post_init__(self):
        if self.truncate_prompt_tokens is not None and self.truncate_prompt_tokens < 1:
            raise ValueError(
                f"truncate_prompt_tokens must be >= 1, got {self.truncate_prompt_tokens}"
            )
        used = {
            *("max_tokens", "temperature", "top_k", "top_p", "ignore_eos", "skip_special_tokens"),
            *("truncate_prompt_tokens", "seed"),
        }
        if not self.is_greedy and ((self.top_k or 0) != 0 or self.top_p not in (None, 1.0)):
            raise NotImplementedError(
                f"the stand-in has no top_k={self.top_k!r} with top_p={self.top_p!r}"
            )
        for item in fields(self):
            value = getattr(self, item.name)
            default = [] if item.name.startswith("stop") else item.default
            if item.name not in used and value != default:
                raise NotImplementedError(f"the stand-in has no {item.name}={value!r}")
        if self.max_tokens is None or self.max_tokens < 1:
            raise NotImplementedError(f"the stand-in has no max_tokens={self.max_tokens!r}")

    @property
    def is_greedy(self):
        """Whether the likeliest token is taken: with a temperature of 0 whatever else is said."""
        return self.temperature == 0 or self.top_k == 1 or self.top_p == 0
