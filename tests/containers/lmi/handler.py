"""Where our handler is, and what the checkpoints are that tests give to it."""

from pathlib import Path

HANDLER = Path("containers/lmi/handler")

GPT2 = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "max_position_embeddings": 64,
}
T5 = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}
