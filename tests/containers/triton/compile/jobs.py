"""What compile jobs of the Triton container are given."""

HYPERPARAMETERS = {
    "target": "cpu",
    "max_batch_size": "4",
    "max_input_tokens": "20",
    "max_new_tokens": "12",
}
