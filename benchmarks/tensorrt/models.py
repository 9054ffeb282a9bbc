"""Makes a model directory that every server reads: checkpoint, step graph, tokenizer.

    python -m benchmarks.tensorrt.models '{"name": ...}' FOLDER SEED

It runs in a process of its own, so that PyTorch is not in the benchmark's. Shapes without a
committed model get random weights, which take the same time. No token ends a text, so that every
answer has all of its tokens. The tokenizer has one word for each token.
"""

import json
import shutil
import sys
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from benchmarks.models import Model, ensure_made
from benchmarks.program import ROOT, Say
from benchmarks.tensorrt.workloads import word

_EXPORT_PACKAGES = ("onnx", "onnxscript", "torch", "transformers")
_POSITIONS = 128
_END_FIELDS = ("bos_token_id", "eos_token_id", "pad_token_id")


def ensure_model(model: Model, parent: Path, seed: int, say: Say) -> Path:
    """Returns a model's directory, which is made again unless its recipe is unchanged."""
    if model.sample:
        sources = sorted(path for path in (ROOT / model.sample).iterdir() if path.is_file())
    else:
        sources = sorted((ROOT / "containers/tensorrt/export").glob("*.py"))
        sources.append(ROOT / "containers/jobs/onnx_files.py")
    return ensure_made(
        model,
        parent,
        seed,
        say,
        maker="benchmarks.tensorrt.models",
        sources=(Path(__file__), *sources),
        packages=("tokenizers",) if model.sample else ("tokenizers", *_EXPORT_PACKAGES),
    )


def make_tokenizer(vocabulary: int) -> Tokenizer:
    """Returns a tokenizer with one word for each token, so that words count tokens."""
    words = WordLevel({word(token): token for token in range(vocabulary)}, unk_token=word(0))
    tokenizer = Tokenizer(words)
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return tokenizer


def copy_sample(sample: Path, folder: Path) -> None:
    """Copies a committed model's checkpoint and graph; no token of the copy ends a text."""
    for name in ("model.onnx", "model.safetensors"):
        shutil.copyfile(sample / name, folder / name)
    for name in ("config.json", "generation_config.json"):
        document = json.loads((sample / name).read_text("utf-8"))
        document |= dict.fromkeys(_END_FIELDS)
        (folder / name).write_text(json.dumps(document, indent=2) + "\n", "utf-8")


def make_random_model(model: Model, folder: Path, seed: int) -> None:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from containers.tensorrt.export.gpt2 import export_gpt2_step

    torch.manual_seed(seed)
    config = GPT2Config(
        n_layer=model.layers,
        n_embd=model.width,
        n_head=model.heads,
        vocab_size=model.vocabulary,
        n_positions=_POSITIONS,
        # With the usual 0.02, a text repeats a few tokens, which hides wrong ones.
        initializer_range=0.05,
        **dict.fromkeys(_END_FIELDS),
    )
    made = GPT2LMHeadModel(config).eval()
    made.save_pretrained(folder)
    export_gpt2_step(made, folder / "model.onnx")


def make(model: Model, folder: Path, seed: int) -> None:
    if model.sample:
        copy_sample(ROOT / model.sample, folder)
    else:
        make_random_model(model, folder, seed)
    make_tokenizer(model.vocabulary).save(str(folder / "tokenizer.json"))


if __name__ == "__main__":
    make(Model(**json.loads(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]))
