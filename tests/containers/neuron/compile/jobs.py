"""Compile jobs of the Neuron container, and checkpoints for them."""

import json
from pathlib import Path

from containers.neuron.compile.job import Hyperparameters
from tests.containers.neuron.machine import WORDS, write_versions
from tests.containers.neuron.vocabularies import bert_tokenizer
from tests.support.compile_jobs import Job, write_weights

STANDINS = Path(__file__).parent / "standins"
# Packages with the names of AWS's; PyTorch is the real one.
VERSIONS = {
    "inf1": {
        "torch-neuron": "1.13.1.2.11.13.0",
        "neuron-cc": "1.24.0.0+d58fa6134",
        "tensorflow": "1.15.5.post1",
    },
    "inf2": {"torch-neuronx": "2.9.0.2.13.26312", "neuronx-cc": "2.24.8799.0"},
}
HYPERPARAMETERS = {
    "target": "cpu",
    "task": "question-answering",
    "batch_size": "2",
    "sequence_lengths": "16,32",
    "pipeline_cores": "1",
    "dtype": "fp32",
}
ASKED = Hyperparameters(
    target="cpu",
    task="question-answering",
    batch_size=2,
    sequence_lengths=(16, 32),
    pipeline_cores=1,
    dtype="fp32",
    runtime="onnxruntime",
)
SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
}


def write_checkpoint_files(directory, **changes):
    """Writes what has the form of a checkpoint, for jobs that come no further than its checks."""
    config = {
        "model_type": "bert",
        "architectures": ["BertForQuestionAnswering"],
        **SIZES,
        **changes,
    }
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "tokenizer.json").write_text(bert_tokenizer(WORDS).to_str())
    write_weights(directory)


class NeuronJob(Job):
    def has_compilers(self, target, **versions):
        write_versions(self.modules, VERSIONS[target] | versions)
        for path in STANDINS.iterdir():
            if path.suffix != ".md" and path.name != "__pycache__":
                (self.modules / path.name).symlink_to(path)

    @property
    def record(self):
        return self.modules / "record"

    def compiled(self):
        """Returns the package, the shapes and the arguments of each graph, in order."""
        return [json.loads(line) for line in self.record.read_text().splitlines()]

    def run(self, **options):
        changes = {"NEURON_STANDIN_RECORD": str(self.record), **options.pop("env_changes", {})}
        return super().run(env_changes=changes, **options)
