"""`slipway import --properties`: the file it writes, its report, and what it refuses.

`pytest tests/importing --update-golden` writes `properties.txt` anew.
"""

import json
import os
from pathlib import Path

import pytest
import typer

from slipway.project import Project
from tests.support.golden_texts import compare_golden, read_golden
from tests.support.projects import PRODUCTION, write_project

OLD = """\
# from a notebook
engine=MPI
option.model_id=s3://acme-models/llama-2-7b-chat
option.tensor_parallel_degree: 1
option.tensor_parallel_degree=4
option.rolling_batch = lmi-dist
option.max_rolling_batch_size=\\
    32
option.output_formatter=jsonlines
option.paged_atention=true
option.dtype=fp16
option.model_loading_timeout=7200
"""
ANSWERS = ("--instance", "ml.g5.12xlarge")
GOLDEN = Path(__file__).with_name("properties.txt")
CONFIG, REPORT = "model_configs/chat.yaml", "what is printed"
GOLDEN_TEXTS = {name: f"{text}\n" for name, text in read_golden(GOLDEN).items()}


@pytest.fixture
def old(tmp_path, monkeypatch):
    """Returns the folder of a model in a new project."""
    monkeypatch.chdir(write_project(tmp_path, {}))
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "serving.properties").write_text(OLD, "utf-8")
    return folder


@pytest.fixture
def run(slipway_command):
    return lambda *arguments: slipway_command("import", "chat", "--properties", "old", *arguments)


def settings(old, *lines):
    (old / "serving.properties").write_text("\n".join(lines), "utf-8")


def test_one_yaml_with_a_comment_for_each_guess_and_a_list_of_what_is_left_out(
    accepted, old, config, request
):
    said = {REPORT: accepted(*ANSWERS), CONFIG: config.read_text("utf-8")}
    for name, text in said.items():
        compare_golden(request, GOLDEN, said, name, text)
    plan = Project(old.parent).plan("chat", PRODUCTION, allow_unpublished=True)
    assert plan.serving_properties["option.rolling_batch"] == "lmi-dist"


def test_a_dry_run_prints_the_file_and_writes_nothing(run, old, config):
    # What is not written is tried in another folder, without the project's own policies.
    environments = old.parent / "environments.yaml"
    text = environments.read_text("utf-8")
    environments.write_text(f"policies: {{own: {{p: 'not_there:f'}}}}\n{text}", "utf-8")
    code, output, errors = run(*ANSWERS, "--dry-run")
    assert (code, output) == (0, GOLDEN_TEXTS[CONFIG])
    assert errors == "".join(GOLDEN_TEXTS[REPORT].splitlines(keepends=True)[1:-3])
    assert not config.exists()


def test_json_has_the_config_the_guesses_and_the_lists(run, old, config):
    code, output, errors = run(*ANSWERS, "--json")
    report = json.loads(output)
    assert (code, errors) == (0, "")
    assert report["file"] == "model_configs/chat.yaml"
    assert report["config"] == GOLDEN_TEXTS[CONFIG] == config.read_text("utf-8")
    assert {
        "field": "serving.version",
        "value": "0.32.0",
        "reason": "no setting names it. This is the newest image that suits the settings best.",
    } in report["guesses"]
    assert len(report["guesses"]) == 7
    assert [setting["name"] for setting in report["left_out"]] == [
        "option.tensor_parallel_degree",
        "option.paged_atention",
    ]
    assert [setting["value"] for setting in report["changed"]] == ["7200"]
    assert report["added"] == {"retry_threshold": "10", "option.predict_timeout": "60"}
    assert report["next"] == [
        "slipway publish chat --env production", "cdk deploy chat -c env=production",
    ]  # fmt: skip
    assert report["problems"] == []


def test_nothing_is_overwritten_without_being_told(accepted, run, old, config):
    config.write_text("mine", "utf-8")
    code, _, errors = run(*ANSWERS)
    assert (code, errors) == (
        1,
        "1 problem\n- model_configs/chat.yaml is there already [SW408]\n"
        "    Choose another name, or add `--overwrite`.\n",
    )
    assert config.read_text("utf-8") == "mine"
    assert run(*ANSWERS, "--dry-run")[0] == 0
    assert config.read_text("utf-8") == "mine"
    accepted(*ANSWERS, "--overwrite")
    assert config.read_text("utf-8") == GOLDEN_TEXTS[CONFIG]


MODEL_ID = "option.model_id=s3://acme-models/opt-1.3b/"
REQUIREMENTS = {"requirements.txt": "einops\n"}


@pytest.mark.parametrize(
    ("lines", "files", "options", "copied", "serving", "rendered", "told"),
    [
        # A model.py is told no precision that its own file did not name.
        (["engine=Python"],
         {"model.py": "def handle(inputs): ...\n", ".hidden": "", **REQUIREMENTS}, (),
         ["model.py", "requirements.txt"],
         {"script": "handlers/chat"}, {"option.dtype": None},
         "Copied: handlers/chat/model.py\nCopied: handlers/chat/requirements.txt\n"),
        (["option.entryPoint=inference.py"], {"inference.py": "def handle(inputs): ...\n"}, (),
         ["model.py"], {"script": "handlers/chat"}, {},
         "Changed: option.entryPoint=inference.py: copied as model.py, which is the name that "
         "Slipway's package has for it.\n"),
        # It has formatters, and leaves the answers to the image.
        (["option.rolling_batch=vllm"], {"model.py": "@output_formatter\ndef plain(output): ...\n"},
         ("--version", "0.30.0"), ["model.py"],
         {"script": "handlers/chat", "entry_point": "djl_python.huggingface",
          "rolling_batch": "vllm"},
         {"option.entryPoint": "djl_python.huggingface", "option.rolling_batch": "vllm"},
         "Copied: handlers/chat/model.py\n"),
        (["option.rolling_batch=vllm"], REQUIREMENTS, (), ["requirements.txt"],
         {"requirements": "handlers/chat", "script": None}, {},
         "Copied: handlers/chat/requirements.txt\n"),
        (["option.entryPoint=djl_python.deepspeed"], {"model.py": "def handle(inputs): ...\n"},
         ("--framework", "djl-deepspeed"), [], {"script": None}, {},
         "Left out: files beside it=model.py: the server runs djl_python.deepspeed, a handler of "
         "the image.\n"),
    ],
    ids=["own", "of another name", "formatters", "requirements alone", "not read"],
)  # fmt: skip
def test_a_handler_and_its_requirements_come_along(
    accepted, old, written, tmp_path, lines, files, options, copied, serving, rendered, told
):
    settings(old, MODEL_ID, *lines)
    for name, text in files.items():
        (old / name).write_text(text, "utf-8")
    assert told in accepted(*ANSWERS, *options)
    found = {path.name: path.read_text("utf-8") for path in tmp_path.glob("handlers/chat/*")}
    assert sorted(found) == copied
    assert {*found.values()} <= {*files.values()}
    assert {name: written()["serving"].get(name) for name in serving} == serving
    plan = Project(tmp_path).plan("chat", PRODUCTION, allow_unpublished=True)
    assert {name: plan.serving_properties.get(name) for name in rendered} == rendered


def test_a_handler_that_is_there_already_is_not_overwritten(accepted, run, old, config):
    settings(old, MODEL_ID, "engine=Python")
    for name in ("model.py", "requirements.txt"):
        (old / name).touch()
    accepted(*ANSWERS)
    config.unlink()
    code, _, errors = run(*ANSWERS)
    assert code == 1
    for name in ("model.py", "requirements.txt"):
        assert f"handlers/chat/{name} is there already [SW408]" in errors
    assert not config.exists()


def test_a_checkpoint_beside_the_file_is_the_weights(accepted, old, written, config):
    settings(old, "option.model_id=/opt/ml/model", "option.rolling_batch=vllm")
    (old / "config.json").write_text("{}", "utf-8")
    (old / "model.safetensors").touch()
    accepted(*ANSWERS, "--family", "opt", "--parameters", "1300000000")
    content = written()
    assert content["artifacts"]["weights"] == {"source": "path", "path": "old"}
    assert content["model"] == {"family": "opt", "parameters": 1_300_000_000}


@pytest.mark.parametrize(
    ("model_id", "why", "options"),
    [
        ("{{s3url}}", "`option.model_id={{s3url}}` is a placeholder; ", "--weights, "),
        ("djl://ai.djl/x", "`option.model_id=djl://ai.djl/x` is neither in S3 nor on the Hub; ",
         "--weights, "),
        ("./", "`option.model_id=./` is a folder of the package, and old/serving.properties has no "
         "weights beside it; ", "--weights, "),
        ("s3://acme-models/x/", "", ""),
    ],
)  # fmt: skip
def test_what_nothing_tells_is_asked_for_by_its_option(run, old, config, model_id, why, options):
    settings(old, f"option.model_id={model_id}")
    code, _, errors = run()
    assert (code, errors) == (
        1,
        f"1 problem\n- {why}some options are missing, and there is no terminal to ask for them "
        f"[SW410]\n    Give {options}--family, --parameters, --instance.\n",
    )
    assert not config.exists()


def test_on_a_terminal_it_asks(accepted, old, written, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    settings(old, "option.model_id={{s3url}}")
    answers = {
        "Weights (hub:OWNER/NAME@REVISION, s3://BUCKET/PREFIX/ or a directory)": "s3://acme/x/",
        "Architecture of the network": "opt",
        "Number of its weights": "1300000000",
        "Hosting instance type": "ml.g5.2xlarge",
    }
    monkeypatch.setattr(typer, "prompt", lambda question, type: type(answers.pop(question)))
    accepted()
    assert answers == {}
    content = written()
    assert content["artifacts"]["weights"] == {"source": "s3", "uri": "s3://acme/x/"}


def test_what_the_rules_refuse_is_written_and_reported_with_its_line(run, old, config):
    code, output, errors = run("--instance", "ml.g5.2xlarge")
    assert (code, output) == (1, "")
    assert errors.startswith("model_configs/chat.yaml written; correct what is wrong in it:\n")
    assert "Left out: option.paged_atention=true" in errors
    assert "model_configs/chat.yaml:32:15: endpoint.instances[0]: one copy takes 4 GPUs" in errors
    config.unlink()
    code, output, _ = run("--instance", "ml.g5.2xlarge", "--json", "--dry-run")
    assert code == 1
    assert [problem["code"] for problem in json.loads(output)["problems"]] == ["SW343"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("a=1", "b=\\u12"), "old/serving.properties:2:1: `\\u12` is not an escape, and Java "
         "refuses the whole file [SW656]\n    Write `\\u` with four hexadecimal digits, or `\\\\` "
         "for a backslash.\n"),
        (("option.entryPoint=own.py", "option.model_id=s3://a/opt-1.3b"),
         "old/serving.properties names the handler own.py, and there is no such file beside it "
         "[SW657]\n    Copy the file there. If the image has the handler, remove the line "
         "`option.entryPoint`.\n"),
        (("option.entryPoint=https://example.com/model.py", "option.model_id=s3://a/opt-1.3b"),
         "`option.entryPoint` is an address: the server would download its handler [SW657]\n"
         "    Save the file as model.py beside serving.properties, and remove the line.\n"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_imported(run, old, config, lines, message):
    settings(old, *lines)
    code, _, errors = run(*ANSWERS)
    assert (code, errors) == (1, f"1 problem\n- {message}")
    assert not config.exists()


def test_a_folder_without_the_file_and_a_pipe(slipway_command, run, old):
    code, _, errors = slipway_command("import", "chat", "--properties", "new")
    assert (code, errors) == (
        1,
        "1 problem\n- new/serving.properties cannot be read: No such file or directory [SW656]\n"
        "    Name the folder that has the file serving.properties.\n",
    )
    (old / "serving.properties").unlink()
    os.mkfifo(old / "serving.properties")
    code, _, errors = run()
    assert code == 1
    assert "old/serving.properties cannot be read: it is a folder, a pipe or a device" in errors


def test_the_file_itself_may_be_named(slipway_command, old):
    code, output, _ = slipway_command(
        "import", "chat", "--properties", "old/serving.properties", *ANSWERS, "--dry-run"
    )
    assert (code, output) == (0, GOLDEN_TEXTS[CONFIG])


def test_an_image_that_there_is_not(run, old):
    code, _, errors = run(*ANSWERS, "--framework", "djl-deepspeed", "--version", "0.30.0")
    assert code == 1
    assert "there is no image of djl-deepspeed 0.30.0 [SW218]\n    There are 0.19.0, " in errors
    code, _, errors = run(*ANSWERS, "--framework", "djl-vllm")
    assert code == 1
    assert "there is no framework 'djl-vllm' [SW202]\n    Did you mean `djl-lmi`?" in errors
