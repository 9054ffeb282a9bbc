"""Holds generated tokens against the logits of PyTorch's float32 model, token by token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Tokens: TypeAlias = Sequence[int]

# As a share of the largest logit: float16 rounds in proportion to the number, over all layers.
_TOLERANCE = 0.02


@dataclass(frozen=True)
class Closeness:
    """The result of a comparison.

    Args:
        single: PyTorch's own tokens in float32.
        half: the same in float16.
        largest: the largest distance of a given token's logit from the best logit, after the same
            beginning, as a share of the largest logit.
        largest_of_half: the same of PyTorch's tokens in float16.
    """

    single: Sequence[Tokens]
    half: Sequence[Tokens]
    largest: float
    largest_of_half: float
    device: str

    def facts(self, found: Sequence[Tokens]) -> dict[str, str | int | float | None]:
        """Returns the comparison by its names for readers; `found` are the given tokens."""
        return {
            "texts": len(found),
            "different texts": len(set(map(tuple, found))),
            "texts equal to PyTorch's (float32)": agreement(found, self.single),
            "texts equal to PyTorch's (float16)": agreement(found, self.half),
            "texts of PyTorch's float16 equal to its float32": agreement(self.half, self.single),
            "largest distance of a token from the best logit": self.largest,
            "the same of PyTorch's float16": self.largest_of_half,
            "PyTorch computes on": self.device,
        }

    @property
    def problems(self) -> list[str]:
        """Returns why the given tokens are wrong; nothing if they are right."""
        if self.largest <= _TOLERANCE:
            return []
        return [
            f"a token is {self.largest:.4f} of the largest logit away from the best token of "
            f"PyTorch's float32 model; at most {_TOLERANCE} is rounding"
        ]


def agreement(found: Sequence[Tokens], expected: Sequence[Tokens]) -> str:
    same = sum(list(one) == list(other) for one, other in zip(found, expected, strict=True))
    return f"{same} of {len(found)}"


# Any: a model of PyTorch.
def compare_gpt2(model: Any, prompts: Sequence[Tokens], found: Sequence[Tokens]) -> Closeness:
    """Compares the tokens of a GPT-2 with those that it generates itself; see `compare`."""
    import torch

    def logits(single: Any, ids: Any, tokens: Any) -> Any:
        start = ids.shape[1] - 1
        return single(torch.cat([ids, tokens[:, :-1]], dim=1)).logits[:, start:]

    return compare(model, prompts, found, logits, lambda ids, output: output[:, ids.shape[1] :])


# Any: models and tensors of PyTorch.
def compare(
    model: Any, prompts: Sequence[Tokens], found: Sequence[Tokens], logits: Any, new: Any
) -> Closeness:
    """Compares tokens with those that a model generates greedily, in float32 and float16.

    The model is in float32, on the CPU. All prompts have the same number of tokens, and so have all
    new tokens. `logits` takes the model, the prompts and the new tokens, and returns the model's
    logits for each of these. `new` returns the new tokens of the prompts and what `generate`
    returns.
    """
    # Here, because most steps need no PyTorch, whose import takes seconds.
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    # TF32 would round the reference.
    torch.backends.cuda.matmul.allow_tf32 = False
    model = model.to(device)
    ids = torch.tensor([list(each) for each in prompts], device=device)
    given = torch.tensor([list(each) for each in found], device=device)

    def generated() -> Any:
        count = given.shape[1]
        output = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=count,
            min_new_tokens=count,
            pad_token_id=0,
        )
        return new(ids, output)

    def distance(tokens: Any) -> float:
        found_logits = logits(model, ids, tokens)
        chosen = found_logits.gather(2, tokens[:, :, None])[:, :, 0]
        return float(((found_logits.amax(2) - chosen) / found_logits.abs().amax(2)).max())

    with torch.inference_mode():
        single, largest = generated(), distance(given)
        model = model.half()
        half = generated()
        model = model.float()
        return Closeness(single.tolist(), half.tolist(), largest, distance(half), device)
