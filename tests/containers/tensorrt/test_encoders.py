"""The sample BERT in both containers, and an engine of it on stand-ins for the GPU and TensorRT."""

import importlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from containers.encoders.manifest import (
    ENCODER_FILE,
    NEURON_FILE,
    read_manifest,
    write_manifest,
)
from containers.neuron.predictor import NeuronPredictor
from containers.neuron.settings import NeuronSettings
from containers.serving.predictor import ConcurrentPredictor, ModelLoadError
from containers.serving.settings import EnvironmentReader, ServingSettings, SettingsError
from containers.tensorrt.compile.profiles import encoder_profiles
from containers.tensorrt.engine_metadata import REMEDY
from containers.tensorrt.settings import TensorRTSettings
from tests.containers.tensorrt.runtimes.tensorrt_standin import VERSION
from tests.containers.tensorrt.runtimes.tensorrt_types import DataType
from tests.containers.tensorrt.sample_model import encoder_answer as answer
from tests.containers.tensorrt.sample_model import encoder_predictor as predictor

SAMPLE = Path("samples/bert-qa/model").absolute()
CONTEXT = "The platform team owns search-qa. search-qa is in eu-west-1."
QUESTIONS = [
    {"question": "Who owns search-qa?", "context": CONTEXT},
    {"question": "Where is search-qa?", "context": CONTEXT},
    # Several windows.
    {"question": "Who owns search-qa?", "context": f"{'It is a service. ' * 60}{CONTEXT}"},
]


@pytest.fixture(scope="module")
def served():
    found = predictor(task="question-answering", sequence_length=128, dtype="fp16")
    found.load(SAMPLE)
    return found


def test_both_containers_give_the_same_answers(served):
    assert isinstance(served, ConcurrentPredictor)
    neuron = NeuronPredictor(NeuronSettings(workers=1), max_batch_size=8)
    try:
        neuron.load(SAMPLE)
        for body in (
            {"inputs": QUESTIONS[0]},
            {"inputs": QUESTIONS, "parameters": {"top_k": 3, "doc_stride": 16}},
            {"inputs": QUESTIONS, "parameters": {"handle_impossible_answer": True}},
        ):
            ours, theirs = answer(served, body), answer(neuron, body)
            assert json.dumps(ours) == json.dumps(theirs)
    finally:
        neuron.close()
    assert answer(served, {"inputs": QUESTIONS[0]})["answer"] == "platform"


def copied(tmp_path, **changes):
    directory = tmp_path / "model"
    shutil.copytree(SAMPLE, directory)
    (directory / NEURON_FILE).unlink()
    write_manifest(replace(read_manifest(SAMPLE), **changes), directory, ENCODER_FILE)
    return directory


def test_only_graphs_for_the_cpu_and_gpus_are_served(tmp_path):
    directory = copied(tmp_path, target="inf2", runtime="torch_neuronx")
    with pytest.raises(ModelLoadError, match="was compiled for inf2 with torch_neuronx, and this"):
        predictor().load(directory)


def test_a_wrong_task_is_refused_when_it_is_loaded(tmp_path):
    with pytest.raises(ModelLoadError) as caught:
        predictor(task="embeddings", sequence_length=64).load(copied(tmp_path))
    assert "its task is question-answering, and SLIPWAY_TASK is embeddings" in str(caught.value)
    assert "its longest sequence is 128, and SLIPWAY_SEQUENCE_LENGTH is 64" in str(caught.value)


def test_settings_of_text_generation_are_refused_with_a_task():
    reader = EnvironmentReader({"SLIPWAY_TASK": "embeddings", "SLIPWAY_MAX_NEW_TOKENS": "7"})
    ServingSettings.read(reader)
    TensorRTSettings.read(reader)
    with pytest.raises(SettingsError) as caught:
        reader.finish()
    assert caught.value.problems == (
        "SLIPWAY_MAX_NEW_TOKENS is for text generation, and SLIPWAY_TASK=embeddings is a task of "
        "encoders",
    )


def published(machine, tmp_path, **changes):
    """Makes an engine of the sample's graph, with the container's own builder."""
    machine.tensorrt.float_type = DataType.FLOAT
    manifest = read_manifest(SAMPLE)
    profiles = encoder_profiles(manifest.inputs, 4, manifest.buckets)
    builder = importlib.import_module("containers.tensorrt.compile.engine_builder")
    plan = builder.build_engine(SAMPLE / "model.onnx", profiles).plan
    engine = {
        "target": "sm86",
        "runtime": "tensorrt",
        "batch_size": 4,
        "graphs": dict.fromkeys(manifest.buckets, "model.engine"),
        "versions": {"tensorrt": VERSION},
    }
    directory = copied(tmp_path, **engine | changes)
    (directory / "model.onnx").unlink()
    (directory / "model.engine").write_bytes(plan)
    return directory


def test_an_engine_gives_the_same_answers(machine, served, tmp_path):
    body = {"inputs": [*QUESTIONS, QUESTIONS[0]], "parameters": {"top_k": 2}}
    found = predictor(4)
    found.load(published(machine, tmp_path))
    ours, theirs = answer(found, body, most=4), answer(served, body)
    for mine, other in zip(ours, theirs, strict=True):
        assert [each["answer"] for each in mine] == [each["answer"] for each in other]
        assert [each["score"] for each in mine] == pytest.approx(
            [each["score"] for each in other], abs=1e-5
        )


def test_rows_of_about_one_length_share_a_batch(machine, served, tmp_path):
    """The CPU's graph pads a batch to its longest row, and an engine to the whole bucket."""
    inputs = [{"question": "Who?", "context": f"It{' is' * count}."} for count in (30, 50, 31)]
    rows = served.parse(json.dumps({"inputs": inputs}).encode())
    assert {row.bucket for row in rows} == {64}
    assert served.choose(rows, 8) == [0, 2]
    engine = predictor(4)
    engine.load(published(machine, tmp_path))
    assert engine.choose(rows, 8) == [0, 1, 2]


def test_a_damaged_engine_is_not_served(machine, tmp_path):
    directory = published(machine, tmp_path)
    engine = directory / "model.engine"
    engine.write_bytes(engine.read_bytes()[:-1])
    for _ in range(2):
        with pytest.raises(ModelLoadError) as caught:
            predictor(4).load(directory)
        assert str(caught.value) == (
            "model.engine is damaged: TensorRT cannot open it (IRuntime::deserializeCudaEngine: "
            f"magicTag mismatch); {REMEDY}"
        )
        # Nothing says that the engine was built from a graph that lies beside it.
        shutil.copy(SAMPLE / "model.onnx", directory)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"target": "sm75"}, "it was built for sm75, and this GPU is sm86 (NVIDIA A10G)"),
        ({"versions": {"tensorrt": "10.4.0"}}, "it was made with tensorrt 10.4.0, and this"),
        ({"batch_size": 2}, "its batch_size is 2, and SLIPWAY_MAX_BATCH_SIZE is 4"),
        ({"batch_size": 64}, "profile 0 takes input_ids of"),
    ],
)
def test_an_engine_that_does_not_fit_is_refused(machine, tmp_path, changes, problem):
    directory = published(machine, tmp_path, **changes)
    with pytest.raises(ModelLoadError) as caught:
        predictor(4).load(directory)
    assert problem in str(caught.value)
