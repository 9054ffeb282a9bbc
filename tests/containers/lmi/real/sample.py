"""The sample model's completions, of samples/gpt2-autocomplete/README.md, and requests for them."""

BUCKET = "Amazon S3 bucket"
RESULTS = "The maximum number of results to return in a single"
COMPLETIONS = {BUCKET: " name for the Amazon S3 bucket.", RESULTS: " page."}


def greedy(prompt, **parameters):
    defaults = {"max_new_tokens": 16, "do_sample": False}
    return {"inputs": prompt, "parameters": defaults | parameters}
