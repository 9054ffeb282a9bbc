"""An instance with Neuron devices, made of stand-ins, its models, its workers and a predictor."""

import importlib.util
import json
import os
import sys
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from containers.encoders.manifest import TASK_OUTPUTS, Manifest, write_manifest
from containers.neuron.lanes import WorkerCommand
from containers.neuron.placement import placements
from containers.neuron.predictor import NeuronPredictor
from containers.neuron.settings import NeuronSettings
from containers.neuron.workers import RestartPolicy, WorkerPool
from tests.containers.neuron.vocabularies import bert_tokenizer

ROOT = Path(__file__).parents[3]
STANDINS = Path(__file__).parent / "standins"

VERSIONS = {
    "inf1": {
        "torch": "1.13.1",
        "torch-neuron": "1.13.1.2.11.13.0",
        "neuron-cc": "1.24.0.0+d58fa6134",
    },
    "inf2": {"torch": "2.9.0", "torch-neuronx": "2.9.0.2.13.1", "neuronx-cc": "2.24.5"},
}
_OPERATORS = {"inf1": "neuron::forward_1", "inf2": "neuron::forward_v2"}
_RUNTIMES = {"inf1": "torch_neuron", "inf2": "torch_neuronx"}
PATIENCE_SECONDS = 60.0
QUICK = RestartPolicy(most_deaths=6, first_pause_seconds=0.01)
BATCH, COLUMNS = 2, 16
WORDS = ("who", "wrote", "it", "ada", "love", "##lace", "the", "first", "program", "?", ".")


def _module():
    # By its path: its directory is on the path of the workers alone.
    spec = importlib.util.spec_from_file_location("neuron_runtime", STANDINS / "neuron_runtime.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runtime = _module()


class NeuronMachine(runtime.Machine):
    """An instance: its devices, and the site where packages say their versions."""

    def __init__(self, directory, cores, site):
        super().__init__(directory, cores)
        self.site = site

    @property
    def environment(self):
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLIPWAY", "NEURON"))
        }
        path = os.pathsep.join(str(each) for each in (STANDINS, self.site, ROOT))
        return inherited | {
            "PYTHONPATH": path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "NEURON_STANDIN_DIRECTORY": str(self.directory),
            "NEURON_STANDIN_CORES": str(self.cores),
        }

    def enter(self, monkeypatch):
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def arguments(self, model_dir):
        return (sys.executable, "-m", "containers.neuron.worker", str(model_dir), "1")


def make_machine(directory, *, cores, versions=VERSIONS["inf1"]):
    machine = NeuronMachine(directory / "devices", cores, directory / "site")
    machine.directory.mkdir()
    write_versions(machine.site, versions)
    return machine


def write_versions(site, versions):
    for name, version in versions.items():
        metadata = site / f"{name.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )


def compiled_model(
    directory,
    *,
    task="question-answering",
    target="inf1",
    batch_size=2,
    pipeline_cores=1,
    buckets=(16, 32),
    stage_seconds=0.0,
    labels=("NO", "YES"),
    **changes,
):
    """Writes a model directory as `compile` would for this machine; `changes` are the manifest's.

    The words `crash`, `crashonce`, `fail` and `hang` make its graphs do so.
    """
    directory.mkdir(parents=True, exist_ok=True)
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    for length in buckets:
        (directory / f"model-{length}.pt").write_text(
            json.dumps(
                {
                    "operator": _OPERATORS[target],
                    "task": task,
                    "batch_size": batch_size,
                    "sequence_length": length,
                    "inputs": len(inputs),
                    "pipeline_cores": pipeline_cores,
                    "stage_seconds": stage_seconds,
                }
            )
        )
    fields = {
        "task": task,
        "target": target,
        "runtime": _RUNTIMES[target],
        "batch_size": batch_size,
        "pipeline_cores": pipeline_cores,
        "dtype": "bf16",
        "graphs": {length: f"model-{length}.pt" for length in buckets},
        "inputs": inputs,
        "outputs": TASK_OUTPUTS[task],
        "pooling": "mean" if task == "embeddings" else None,
        "normalize": False,
        "versions": VERSIONS[target],
        "compiler_arguments": (),
    }
    write_manifest(Manifest(**fields | changes), directory)
    # Ids far from those of words.
    document = json.loads(bert_tokenizer(WORDS).to_str())
    for word, token_id in (
        ("crash", runtime.CRASH_ID),
        ("crashonce", runtime.CRASH_ONCE_ID),
        ("fail", runtime.FAIL_ID),
        ("hang", runtime.HANG_ID),
    ):
        document["model"]["vocab"][word] = token_id
    (directory / "tokenizer.json").write_text(json.dumps(document))
    (directory / "config.json").write_text(
        json.dumps(
            {
                "vocab_size": 60_000,
                "pad_token_id": 0,
                "id2label": {str(number): label for number, label in enumerate(labels)},
            }
        )
    )
    return directory


def instance(tmp_path, *, cores, **model):
    machine = make_machine(tmp_path, cores=cores)
    return machine, compiled_model(tmp_path / "model", buckets=(COLUMNS,), **model)


@contextmanager
def workers(
    machine,
    model_dir,
    *,
    count,
    cores=1,
    lanes=1,
    lanes_ahead=0,
    policy=QUICK,
    batch_timeout_seconds=PATIENCE_SECONDS,
    **environment,
):
    command = WorkerCommand(
        arguments=machine.arguments(model_dir),
        environment=machine.environment | environment,
        lanes=lanes,
        lanes_ahead=lanes_ahead,
        start_timeout_seconds=PATIENCE_SECONDS,
        batch_timeout_seconds=batch_timeout_seconds,
    )
    pool = WorkerPool(placements(count, cores), command, policy, Future())
    try:
        pool.start()
        yield pool
    finally:
        pool.close()


def batch(*token_ids):
    input_ids = np.full((BATCH, COLUMNS), 7, np.int64)
    input_ids[0, : len(token_ids)] = token_ids
    ones = np.ones_like(input_ids)
    return {"input_ids": input_ids, "attention_mask": ones, "token_type_ids": ones}


def check(pool, *token_ids):
    """Computes a batch and compares it with what its graph computes."""
    arrays = batch(*token_ids)
    outputs = pool.compute(arrays)
    expected = runtime.computed("question-answering", *arrays.values())
    assert list(outputs) == ["start_logits", "end_logits"]
    for found, wanted in zip(outputs.values(), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@contextmanager
def opened(directory, *, workers=1, **options):
    with closing(NeuronPredictor(NeuronSettings(workers=workers), **options)) as predictor:
        predictor.load(directory)
        yield predictor


def answer(predictor, **body):
    """Asks as the serving core does."""
    waiting = list(predictor.parse(json.dumps(body).encode()))
    outputs = [None] * len(waiting)
    places = list(range(len(waiting)))
    while places:
        chosen = [places[i] for i in predictor.choose([waiting[place] for place in places], 2)]
        for place, output in zip(
            chosen, predictor.predict([waiting[place] for place in chosen]), strict=True
        ):
            outputs[place] = output
        places = [place for place in places if place not in chosen]
    return json.loads(predictor.render(outputs))
