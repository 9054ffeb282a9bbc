import dataclasses
import json
import re
from pathlib import Path

import pytest

from containers.encoders.manifest import Manifest, read_manifest, write_manifest
from containers.encoders.model_directory import check_files, check_graphs, read_config
from containers.encoders.predictor import check_manifest
from containers.neuron.settings import NeuronSettings
from containers.serving.predictor import ModelLoadError
from tests.support.messages import message_of

VERSIONS = {"torch": "1.13.1", "torch-neuron": "1.13.1.2.11.13.0", "neuron-cc": "1.24.0.0"}
MANIFEST = Manifest(
    task="question-answering",
    target="inf1",
    runtime="torch_neuron",
    batch_size=6,
    pipeline_cores=1,
    dtype="bf16",
    graphs={128: "model-128.pt", 32: "model-32.pt"},
    inputs=("input_ids", "attention_mask", "token_type_ids"),
    outputs=("start_logits", "end_logits"),
    pooling=None,
    normalize=False,
    versions=VERSIONS,
    compiler_arguments=("--fast-math", "none"),
)
SETTINGS = NeuronSettings(
    task="question-answering", sequence_length=128, pipeline_cores=1, dtype="bf16"
)
REMEDY = "publish the model again, which compiles it anew"


def document(**changes):
    fields = {"format_version": 1} | dataclasses.asdict(MANIFEST) | changes
    return json.loads(json.dumps(fields))


def refusal(tmp_path, content):
    (tmp_path / "neuron.json").write_text(json.dumps(content))
    message = message_of(ModelLoadError, read_manifest, tmp_path)
    assert "\n" not in message
    return message.replace(str(tmp_path), "DIR")


def test_what_is_written_is_read(tmp_path):
    write_manifest(MANIFEST, tmp_path)
    assert read_manifest(tmp_path) == MANIFEST
    assert read_manifest(tmp_path).buckets == (32, 128)
    assert json.loads((tmp_path / "neuron.json").read_text())["graphs"] == {
        "32": "model-32.pt",
        "128": "model-128.pt",
    }


def test_every_bad_field_is_named_at_once(tmp_path):
    content = document(
        task="translation", batch_size=0, pipeline_cores=True, dtype="int4", typo=1, inputs=["ids"],
        graphs={"128": "../model.pt"}, normalize=None, versions={"torch": 1},
    )  # fmt: skip
    del content["target"]
    assert refusal(tmp_path, content) == (
        "DIR/neuron.json: target is missing; typo is not a field of it; "
        "task must be one of question-answering, sequence-classification, token-classification, "
        'embeddings, not "translation"; '
        "batch_size must be a whole number from 1 to 1024, not 0; "
        "pipeline_cores must be a whole number from 1 to 64, not true; "
        'dtype must be one of fp32, fp16, bf16, int8, not "int4"; '
        'graphs must be an object of file names by sequence length, not {"128": "../model.pt"}; '
        "inputs must be an array of different names out of input_ids, attention_mask, "
        'token_type_ids, not ["ids"]; '
        "normalize must be true or false, not null; "
        'versions must be an object of texts, not {"torch": 1}; '
        f"{REMEDY}"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "inf2"}, "runtime torch_neuron does not run on inf2"),
        (
            {"outputs": ["logits"]},
            "outputs must be start_logits, end_logits for question-answering",
        ),
        ({"pooling": "mean"}, "pooling does not go with question-answering: it is for embeddings"),
        (
            {"target": "inf2", "runtime": "torch_neuronx", "pipeline_cores": 4},
            "pipeline_cores is 4, and only inf1 has NeuronCore Pipeline",
        ),
        ({"inputs": ["attention_mask"]}, "inputs lacks input_ids"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path, changes, message):
    assert refusal(tmp_path, document(**changes)) == f"DIR/neuron.json: {message}; {REMEDY}"


@pytest.mark.parametrize("length", ["0", "4097", "0128", "128 ", "x", "\u0661"])
def test_a_sequence_length_is_a_plain_number(tmp_path, length):
    assert "graphs must be an object of file names by sequence length" in refusal(
        tmp_path, document(graphs={length: "model.pt"})
    )


def test_what_fits_serves():
    check_manifest(MANIFEST, SETTINGS, 6, VERSIONS, 1)
    # What the environment does not say, the manifest does; what only compiles may be missing.
    check_manifest(MANIFEST, NeuronSettings(), 6, VERSIONS | {"neuron-cc": "1.24.0.0"})
    without_compiler = {name: VERSIONS[name] for name in ("torch", "torch-neuron")}
    check_manifest(MANIFEST, NeuronSettings(), 6, without_compiler)


def test_every_mismatch_is_in_one_line():
    settings = NeuronSettings(task="embeddings", sequence_length=256, dtype="fp32")
    versions = {"torch": "2.9.0", "neuron-cc": "1.23.0.0"}
    assert message_of(ModelLoadError, check_manifest, MANIFEST, settings, 8, versions, 16) == (
        "the model compiled for inf1 cannot serve here: "
        "its task is question-answering, and SLIPWAY_TASK is embeddings; "
        "its longest sequence is 128, and SLIPWAY_SEQUENCE_LENGTH is 256; "
        "its batch_size is 6, and SLIPWAY_MAX_BATCH_SIZE is 8; "
        "its pipeline_cores is 1, and SLIPWAY_PIPELINE_CORES is 16; "
        "its dtype is bf16, and SLIPWAY_DTYPE is fp32; "
        "it was made with torch 1.13.1, and this container has 2.9.0; "
        "it needs torch-neuron, which is not installed here; "
        "it was made with neuron-cc 1.24.0.0, and this container has 1.23.0.0; "
        f"{REMEDY}"
    )


def test_a_smaller_batch_than_compiled_is_a_mismatch_on_neuron():
    with pytest.raises(ModelLoadError, match="its batch_size is 6, and SLIPWAY_MAX_BATCH_SIZE is"):
        check_manifest(MANIFEST, SETTINGS, 4, VERSIONS)


def test_a_sample_for_the_cpu_stands_for_any_number_of_cores():
    sample = dataclasses.replace(
        MANIFEST, target="cpu", runtime="onnxruntime", dtype="fp32", batch_size=64, versions={}
    )
    check_manifest(sample, SETTINGS, 6, {}, 16)
    message = message_of(ModelLoadError, check_manifest, sample, SETTINGS, 65, {})
    assert "its batch_size is 64, and SLIPWAY_MAX_BATCH_SIZE is 65" in message


def test_missing_files_are_named(tmp_path):
    with pytest.raises(ModelLoadError, match="is not a directory: no model data was mounted"):
        check_files(tmp_path / "nothing")
    message = message_of(ModelLoadError, check_files, tmp_path)
    assert message == f"{tmp_path} lacks neuron.json, config.json, tokenizer.json"
    message = message_of(ModelLoadError, check_graphs, tmp_path, MANIFEST)
    assert message == f"{tmp_path} lacks model-128.pt, model-32.pt, which neuron.json names"


def config(tmp_path, task="sequence-classification", **fields):
    (tmp_path / "config.json").write_text(json.dumps(fields))
    return read_config(tmp_path, task)


@pytest.mark.parametrize(
    ("labels", "kind", "function"),
    [
        (["a", "b"], None, "softmax"),
        (["a"], None, "sigmoid"),
        (["a", "b"], "multi_label_classification", "sigmoid"),
        (["a"], "regression", "none"),
        (["a", "b"], "single_label_classification", "softmax"),
    ],
)
def test_the_score_function_is_that_of_the_training(tmp_path, labels, kind, function):
    names = {str(number): label for number, label in enumerate(labels)}
    extra = {"problem_type": kind} if kind else {}
    read = config(tmp_path, vocab_size=9, id2label=names, **extra)
    assert read.label_names == tuple(labels)
    assert read.score_function == function


def test_every_bad_field_of_the_config_is_named(tmp_path):
    bad = {"pad_token_id": "x", "id2label": {"1": "a"}, "problem_type": "other"}
    assert message_of(ModelLoadError, config, tmp_path, **bad) == (
        f"{tmp_path / 'config.json'}: vocab_size must be a positive whole number, not null; "
        'pad_token_id must be a token id, not "x"; '
        "id2label must name the labels by their numbers, from 0 without gaps; "
        "problem_type must be one of multi_label_classification, regression, "
        'single_label_classification, not "other"'
    )


def test_labels_are_asked_for_only_where_there_are_any(tmp_path):
    assert config(tmp_path, "question-answering", vocab_size=9).label_names == ()


def test_the_guides_example_is_one(tmp_path):
    guide = Path(__file__).parents[3] / "docs" / "guides" / "neuron.md"
    [example] = re.findall(r"```json\n(.*?)```", guide.read_text("utf-8"), re.DOTALL)
    (tmp_path / "neuron.json").write_text(example)
    check_manifest(read_manifest(tmp_path), SETTINGS, 6, VERSIONS)
