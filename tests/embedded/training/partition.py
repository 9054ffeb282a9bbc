"""Stands in for an LMI image in a training job: it writes what partition.py of that image writes.

Names, lists and keys are those that the program of DJL Serving 0.27.0 was seen to write for
DeepSpeed; the parts themselves are a few bytes. With `usage` in the weights' file `mode` it ends
well and writes nothing, as partition.py does of settings that it refuses.
"""

import json
import os
import shutil
import sys
from pathlib import Path

# Where SageMaker mounts what is elsewhere on this machine.
_PLACES = {
    "/opt/ml/input/data/settings": os.environ.get("SM_CHANNEL_SETTINGS", ""),
    "/opt/ml/input/data/weights": os.environ["SM_CHANNEL_WEIGHTS"],
    "/opt/ml/model": os.environ["SM_MODEL_DIR"],
}
_PARTS_OF_A_RANK = 8


def main(arguments: list[str]) -> int:
    command, flag, directory = arguments
    if (command, flag) != ("partition", "--model-dir"):
        print(f"not a command of this image: {arguments}", file=sys.stderr)
        return 2
    text = Path(_PLACES[directory], "serving.properties").read_text()
    properties = dict(line.split("=", 1) for line in text.splitlines())
    weights = Path(_PLACES[properties["option.model_id"]])
    output = Path(_PLACES[properties["option.save_mp_checkpoint_path"]])
    mode = (weights / "mode").read_text()
    if mode == "usage":
        print("Please specify tensor_parallel_degree\nusage: partition.py", flush=True)
        return 0
    degree = int(properties["option.tensor_parallel_degree"])
    parts = [f"tp_{rank:02}_{n:02}.pt" for n in range(_PARTS_OF_A_RANK) for rank in range(degree)]
    for name in ("non-tp.pt", *parts):
        (output / name).write_text(f"{name} of {(weights / 'own.txt').read_text()}")
    listed = {
        "type": "ds_model",
        "checkpoints": {"non_tp": ["non-tp.pt"], "tp": parts},
        "version": 1.0,
        "parallelization": "tp",
        "tp_size": degree,
        "dtype": "float16",
    }
    (output / "ds_inference_config.json").write_text(json.dumps(listed))
    left_out = ("option.entryPoint", "option.model_id", "option.save_mp_checkpoint_path")
    written = {
        "option.parallel_loading": "True",
        "option.checkpoint": "ds_inference_config.json",
        **{key: value for key, value in properties.items() if key not in left_out},
    }
    lines = "".join(f"{key}={value}\n" for key, value in written.items())
    (output / "serving.properties").write_text(lines)
    shutil.copy(weights / "config.json", output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
