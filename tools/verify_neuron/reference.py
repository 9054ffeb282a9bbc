"""Makes the checkpoint, and computes its logits on the CPU with transformers.

    python -m tools.verify_neuron.reference CHECKPOINT CONFIG SEED
    python -m tools.verify_neuron.reference CHECKPOINT ROWS

The workers' Python runs it, because that one has PyTorch. It keeps to Python 3.10.
"""

import json
import sys
from pathlib import Path

import torch
import transformers


def main(checkpoint: str, given: str, seed: str = "") -> None:
    """Writes a checkpoint with random weights; or replaces rows by their logits.

    `given` is the config's fields, as JSON; without a seed, a JSON file with the token ids and the
    token types of each row.
    """
    model_class = transformers.BertForQuestionAnswering
    if seed:
        torch.manual_seed(int(seed))
        model_class(transformers.BertConfig(**json.loads(given))).save_pretrained(checkpoint)
        return
    model, path, logits = model_class.from_pretrained(checkpoint).eval(), Path(given), []
    for row in json.loads(path.read_text("utf-8")):
        # Alone and without padding, so that a graph that computes padding differs.
        token_ids, token_types = (torch.tensor([each]) for each in row)
        with torch.no_grad():
            computed = model(input_ids=token_ids, token_type_ids=token_types)
        logits.append([computed.start_logits[0].tolist(), computed.end_logits[0].tolist()])
    path.write_text(json.dumps(logits), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
