"""`slipway import --hub`: what the files of a checkpoint say, on a stand-in of the Hub.

`pytest tests/importing --update-golden` writes `hub.txt` anew.
"""

import json
from pathlib import Path

import pytest

from tests.publishing.hub_stand_in import REPOSITORY, REVISION
from tests.publishing.test_hub_facts import CONFIG, FILES, PARAMETERS
from tests.support.golden_texts import compare_golden
from tests.support.projects import write_project

ANSWERS = ("--instance", "ml.g5.12xlarge")
GOLDEN = Path(__file__).with_name("hub.txt")


@pytest.fixture
def hub(serve_hub):
    return serve_hub(FILES)


@pytest.fixture
def run(tmp_path, monkeypatch, slipway_command):
    monkeypatch.chdir(write_project(tmp_path, {}))
    return lambda *arguments: slipway_command("import", "chat", *arguments)


def set_config(hub, **changes):
    hub.files["config.json"] = json.dumps(CONFIG | changes).encode()


def test_the_hub_says_the_network_the_commit_and_the_size(accepted, hub, text, request):
    said = {"what is printed": accepted("--hub", REPOSITORY, *ANSWERS), "chat.yaml": text()}
    for name, each in said.items():
        compare_golden(request, GOLDEN, said, name, each)


def test_a_named_commit_is_no_guess(accepted, hub, text):
    accepted("--hub", f"{REPOSITORY}@{REVISION}", *ANSWERS)
    assert "present commit" not in text()


@pytest.mark.parametrize(
    ("changes", "instance", "serving"),
    [
        ({"num_attention_heads": 14, "num_key_value_heads": 2}, "ml.g5.12xlarge",
         {"tensor_parallel_degree": 2}),
        ({}, "ml.g4dn.12xlarge", {"dtype": "fp16"}),
        ({"torch_dtype": "float32"}, "ml.g5.12xlarge", {"dtype": "auto"}),
        ({"max_position_embeddings": 1000}, "ml.g5.12xlarge",
         {"max_input_tokens": 750, "max_new_tokens": 250}),
        ({}, "ml.inf2.24xlarge", {"framework": "djl-neuronx", "dtype": "bf16"}),
        ({}, "ml.p3.8xlarge", {"framework": "djl-lmi", "version": "0.35.0", "dtype": "fp16"}),
    ],
)  # fmt: skip
def test_the_layout_follows_the_network_and_the_type(run, hub, written, changes, instance, serving):
    set_config(hub, **changes)
    run("--hub", f"{REPOSITORY}@{REVISION}", "--instance", instance)
    found = written()["serving"]
    assert {name: found[name] for name in serving} == serving


def test_a_quantised_checkpoint_says_its_method(run, hub, text, config):
    set_config(hub, quantization_config={"quant_method": "awq", "bits": 4})
    run("--hub", REPOSITORY, *ANSWERS)
    assert "# Guess: the precision in config.json. Its weights are quantised with awq." in text()


def test_without_a_type_it_is_the_cheapest_that_fits(accepted, hub, text):
    accepted("--hub", REPOSITORY)
    assert (
        "  # Guess: the first type by price (unknown prices last) whose accelerators hold the "
        "weights and the\n  # cache of a full batch.\n  instances: [ml.g6.xlarge]\n"
    ) in text()


def test_a_reranker_is_served_by_its_head(accepted, hub, written):
    set_config(
        hub, model_type="xlm-roberta", architectures=["XLMRobertaForSequenceClassification"],
        num_labels=1,
    )  # fmt: skip
    accepted("--hub", REPOSITORY)
    found = written()["serving"]
    # The image's own handler for this class of networks, so that no field names it.
    assert "entry_point" not in found
    assert found["rolling_batch"] == "disable"


def test_an_encoder_has_another_container(run, hub, config):
    set_config(hub, model_type="bert")
    code, _, errors = run("--hub", REPOSITORY, *ANSWERS)
    assert (code, errors) == (
        1,
        f"1 problem\n- {REPOSITORY} is an encoder of the family bert, and answers with no text "
        f"[SW659]\n    Run `slipway init chat --container neuron --weights "
        f"hub:{REPOSITORY}@{REVISION} --family bert --parameters {PARAMETERS}`, or the same with "
        "`--container tensorrt`.\n",
    )
    assert not config.exists()


def test_a_repository_that_is_not_there(run, hub):
    code, _, errors = run("--hub", "acme/unknown", *ANSWERS)
    assert code == 1
    assert errors.startswith(
        "1 problem\n- the Hub has no repository acme/unknown, or does not show it [SW610]\n"
    )


def test_a_folder_of_the_project(accepted, run, written, config, tmp_path):
    folder = tmp_path / "build" / "chat"
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    accepted("--hub", "build/chat", *ANSWERS)
    content = written()
    assert content["artifacts"] == {
        "weights": {"source": "path", "path": "build/chat"}, "size_gb": 0.006,
    }  # fmt: skip
    assert content["model"]["parameters"] == PARAMETERS
    for path in folder.glob("model*.safetensors*"):
        path.unlink()
    code, _, errors = run("--hub", "build/chat", "--overwrite")
    assert code == 1
    assert "build/chat has neither a model.safetensors nor an index of weights; some " in errors
    (folder / "config.json").unlink()
    code, _, errors = run("--hub", "build/chat", *ANSWERS, "--overwrite")
    assert code == 1
    assert "build/chat has no config.json [SW656]" in errors


def test_settings_that_name_no_commit_get_the_present_one(
    accepted, run, hub, text, written, tmp_path
):
    old = tmp_path / "old"
    old.mkdir()
    lines = f"option.model_id={REPOSITORY}\noption.rolling_batch=vllm\n"
    (old / "serving.properties").write_text(lines, "utf-8")
    accepted("--properties", "old", *ANSWERS)
    assert (
        f"    # Guess: `option.model_id={REPOSITORY}` names no commit. This is the present one of "
        "`main`.\n"
        f"    revision: {REVISION}\n"
    ) in text()
    assert written()["model"]["parameters"] == PARAMETERS
    hub.status = 503
    code, _, errors = run("--properties", "old", *ANSWERS, "--overwrite")
    assert code == 1
    assert errors == (
        f"1 problem\n- `option.model_id={REPOSITORY}` names no commit: the Hub answers 503 about "
        f"{REPOSITORY} [SW612]\n    Run the command again: what has arrived is not downloaded "
        f"twice. Or name the commit: `--weights hub:{REPOSITORY}@COMMIT`.\n"
    )


def test_files_of_a_commit_that_settings_name_say_more_than_its_name(
    accepted, hub, text, written, tmp_path
):
    (tmp_path / "old").mkdir()
    lines = f"option.model_id={REPOSITORY}\noption.revision={REVISION}\n"
    (tmp_path / "old" / "serving.properties").write_text(lines, "utf-8")
    options = ("--properties", "old", *ANSWERS, "--overwrite")
    accepted(*options)
    model = written()["model"]
    assert (model["family"], model["parameters"], model["layers"]) == ("llama", PARAMETERS, 32)
    hub.status = 503
    accepted(*options, "--parameters", "7")
    assert (
        "  # Guess: the name of the checkpoint says it, because the Hub answers 503 about "
        f"{REPOSITORY}.\n  family: gpt2\n"
    ) in text()
