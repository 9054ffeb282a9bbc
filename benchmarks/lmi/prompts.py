"""The requests: beginnings of sentences that the sample model completes, and its answers to them.

The model ends its own sentences. Every server therefore does the work that its answers show: they
are the same tokens, or the benchmark ends.
"""

import json

from benchmarks.errors import BenchmarkError

MAX_NEW_TOKENS = 32
PROMPTS = (
    "Amazon S3 bucket",
    "Specifies the name of the",
    "The maximum number of results to return in a single",
    "The Amazon Resource Name (ARN) of",
    "Specifies whether",
    "A list of",
    "The status of the",
    "Creates a",
    "Returns information about",
    "The date and time",
    "If you specify",
    "You can use this operation to",
    "The request was denied because",
    "For more information, see",
    "When you create a",
    "To view the",
)


def body(prompt: str) -> str:
    """Returns a request in the form that every server takes; greedy, the default of all."""
    parameters = {"max_new_tokens": MAX_NEW_TOKENS, "do_sample": False}
    return json.dumps({"inputs": prompt, "parameters": parameters})


BODIES = tuple(map(body, PROMPTS))


def completion(index: int, answer: str) -> str:
    """Returns the text that was added to a prompt, which DJL Serving's own handler repeats."""
    try:
        [each] = json.loads(answer)
        text: str = each["generated_text"]
        added = text.removeprefix(PROMPTS[index])
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BenchmarkError(f"not an answer to {PROMPTS[index]!r}: {answer[:500]}") from None
    if not added.strip():
        raise BenchmarkError(f"nothing was added to {PROMPTS[index]!r}: {answer[:500]}")
    return added
