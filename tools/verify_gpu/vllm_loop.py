"""Times vLLM in a process of its own, without a server; it needs vLLM in the same Python."""

import os
import time
from typing import Any

from benchmarks.execution import answer_call


# Any: JSON.
def measure(document: Any) -> list[list[float]]:
    """Returns the turns per second of each trial, for each batch of texts as tokens."""
    # In this process, so that the call ends with everything that it has started.
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    from vllm import LLM, SamplingParams

    batches, new_tokens = document["batches"], document["new_tokens"]
    model = LLM(
        model=document["checkpoint"],
        dtype="half",
        max_model_len=len(batches[0][0]) + new_tokens,
        max_num_seqs=max(map(len, batches)),
        gpu_memory_utilization=0.5,
        # Each turn has the same texts, which a prefix cache would skip.
        enable_prefix_caching=False,
        skip_tokenizer_init=True,
    )
    parameters = SamplingParams(
        temperature=0, max_tokens=new_tokens, ignore_eos=True, detokenize=False
    )

    def seconds_of(batch: list[list[int]]) -> float:
        prompts = [{"prompt_token_ids": tokens} for tokens in batch]
        began_at = time.perf_counter()
        model.generate(prompts, parameters, use_tqdm=False)
        return time.perf_counter() - began_at

    rates: list[list[float]] = []
    for batch in batches:
        seconds_of(batch)
        rates.append([])
        for _ in range(document["trials"]):
            times = [seconds_of(batch)]
            while sum(times) < document["seconds"]:
                times.append(seconds_of(batch))
            rates[-1].append(len(times) / sum(times))
    return rates


if __name__ == "__main__":
    answer_call(measure)
