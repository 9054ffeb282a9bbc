"""Makes a GPT-2 with random weights for fp32, int8 and CTranslate2; see `int8`.

python -m benchmarks.tensorrt.int8_models '{"name": ...}' FOLDER SEED
"""

import json
import shutil
import sys
from pathlib import Path

from benchmarks.models import Model
from benchmarks.tensorrt.int8_run import SYSTEMS


def make(model: Model, folder: Path, seed: int) -> None:
    from ctranslate2.converters.transformers import GPT2Loader
    from transformers import GPT2LMHeadModel

    from benchmarks.tensorrt.models import make_random_model
    from containers.tensorrt.export.gpt2 import export_gpt2_step
    from containers.tensorrt.export.int8 import quantize_graph

    fp32, int8, other = (folder / name for name in SYSTEMS)
    for each in (fp32, int8, other):
        each.mkdir()
    make_random_model(model, fp32, seed)
    for name in ("config.json", "generation_config.json"):
        shutil.copyfile(fp32 / name, int8 / name)
    made = GPT2LMHeadModel.from_pretrained(fp32).eval()
    # As a compile job exports for int8.
    made.set_attn_implementation("eager")
    export_gpt2_step(made, int8 / "model.onnx")
    quantize_graph(int8 / "model.onnx")
    specification = GPT2Loader().get_model_spec(made)
    specification.register_vocabulary([str(token) for token in range(model.vocabulary)])
    for name in ("bos_token", "eos_token", "unk_token"):
        setattr(specification.config, name, "0")
    specification.validate()
    specification.optimize(quantization="int8")
    specification.save(str(other))


if __name__ == "__main__":
    make(Model(**json.loads(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]))
