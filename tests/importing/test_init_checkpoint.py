"""`slipway init` and `fit --hub` on published checkpoints: their files say all but the goal."""

import io
import json
import struct

import pytest
import yaml

from tests.publishing.hub_stand_in import REPOSITORY, REVISION
from tests.support.projects import write_project
from tests.support.published import CONFIGS, published

LATENCY = ("--latency-milliseconds", "5000")
WEIGHTS = {"model.embed_tokens.weight": ("BF16", [2000, 1000])}
PROPOSED = (
    "is the first type by price (unknown prices last) whose accelerators hold the weights and the "
    "cache of a full batch. `--instance` names another one."
)


def words(text):
    """The comments of a config as one line."""
    return " ".join(line.strip(" #") for line in text.splitlines())


@pytest.fixture
def hub(serve_hub):
    return serve_hub(published("gemma-3-12b-it", WEIGHTS))


@pytest.fixture
def run(tmp_path, monkeypatch, slipway_command):
    monkeypatch.chdir(write_project(tmp_path, {}))
    return lambda *arguments: slipway_command("init", "chat", *arguments)


@pytest.fixture
def in_folder(run, tmp_path):
    """Runs the command on a checkpoint in a folder of the project."""

    def command(files, *options):
        for path, content in files.items():
            (tmp_path / "mine" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "mine" / path).write_bytes(content)
        return run("--weights", "mine", *LATENCY, *options)

    return command


def test_a_repository_of_the_hub_leaves_the_latency_alone_to_be_said(accepted, hub, text, written):
    output = accepted("--hub", REPOSITORY, *LATENCY)
    assert output.startswith(
        f"{REPOSITORY}@main is commit {REVISION} now.\nml.g6.xlarge {PROPOSED}\n"
        "model_configs/chat.yaml written.\nNext:\n  1. slipway publish chat --env production\n"
    )
    content = written()
    model = content["model"]
    assert (model["family"], model["parameters"]) == ("gemma3", 2_000_000)
    assert (model["sliding_window"], model["windowed_layers"]) == (1024, 40)
    assert content["artifacts"] == {
        "weights": {"source": "hub", "repository": REPOSITORY, "revision": REVISION},
        "size_gb": 0.004,
    }
    assert content["endpoint"]["instances"] == ["ml.g6.xlarge"]
    assert "Here: the present commit of `main`." in words(text())
    # Of the weights only the header came.
    ranges = [range_ for _, range_ in hub.asked_for(".safetensors")]
    assert ranges
    assert all(int(each.rpartition("-")[2]) < 1000 for each in ranges)


def test_a_terminal_is_asked_for_the_latency_alone(accepted, hub, written, monkeypatch):
    typed = io.StringIO("5000\n")
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", typed)
    output = accepted("--hub", REPOSITORY)
    assert output.startswith("99th percentile of the answers to stay under, in ms: ")
    assert typed.read() == ""
    assert written()["alarms"] == {"model_latency_p99_milliseconds": 5000}


@pytest.mark.parametrize(
    ("name", "settings", "options"),
    [
        ("gemma-3-12b-it", {"dtype": "bf16", "max_new_tokens": 256}, {"max_model_len": 20480}),
        ("qwen3-30b-a3b-fp8", {"dtype": "bf16", "max_new_tokens": 512}, {"max_model_len": 24576}),
        (
            "qwen3-embedding-0.6b",
            {"version": "0.36.0", "max_new_tokens": 1},
            {"task": "feature-extraction", "max_model_len": 16384},
        ),
        (
            "bge-m3",
            {"entry_point": "djl_python.lmi_vllm.vllm_async_service", "rolling_batch": "disable"},
            {"task": "text-embedding", "async_mode": True},
        ),
        (
            "bge-reranker-v2-m3",
            {"entry_point": "djl_python.huggingface", "rolling_batch": "disable", "dtype": "fp16"},
            {},
        ),
    ],
)
def test_the_settings_follow_from_the_task(in_folder, written, name, settings, options):
    code, _, errors = in_folder(published(name, WEIGHTS))
    assert (code, errors) == (0, "")
    serving = written()["serving"]
    assert serving["container"] == "lmi"
    assert settings.items() <= serving.items()
    assert serving.get("options", {}) == options


def test_what_a_models_authors_ask_for_is_offered_and_not_set(in_folder, text, written):
    in_folder(published("qwen3-30b-a3b-fp8", WEIGHTS))
    assert set(written()["serving"]["options"]) == {"max_model_len"}
    lines = text().splitlines()
    offer = lines.index("    # reasoning_parser: qwen3")
    assert "docs/features/reasoning_outputs.md." in lines[offer - 1]
    assert "    # Tool calls: for Qwen3-Coder. Source: vllm" in text()
    # Without the `#` they are options.
    alive = text().replace("    # reasoning_parser", "    reasoning_parser")
    assert yaml.safe_load(alive)["serving"]["options"]["reasoning_parser"] == "qwen3"


def test_an_offer_beside_no_other_option_brings_its_key(in_folder, text, written):
    files = published("qwen3-30b-a3b-fp8", WEIGHTS)
    config = {**CONFIGS["qwen3-30b-a3b-fp8"], "max_position_embeddings": 8192}
    in_folder({**files, "config.json": json.dumps(config).encode()})
    assert "options" not in written()["serving"]
    alive = text().replace("  # options:", "  options:")
    alive = alive.replace("    # reasoning_parser", "    reasoning_parser")
    assert yaml.safe_load(alive)["serving"]["options"] == {"reasoning_parser": "qwen3"}


def test_code_of_the_checkpoint_is_never_trusted_by_itself(in_folder, text, written):
    files = published("qwen3-30b-a3b-fp8", WEIGHTS)
    config = {
        **CONFIGS["qwen3-30b-a3b-fp8"], "architectures": ["InternVLChatModel"],
        "model_type": "internvl_chat",
    }  # fmt: skip
    in_folder({**files, "config.json": json.dumps(config).encode()})
    assert "trust_remote_code" not in written()["serving"]
    assert "  # trust_remote_code: true\n" in text()


def test_a_reranker_that_writes_its_score_is_asked_for_likelihoods(in_folder, text, written):
    files = published("qwen3-embedding-0.6b", WEIGHTS)
    kind = json.dumps({"model_type": "CrossEncoder"}).encode()
    in_folder({**files, "config_sentence_transformers.json": kind})
    assert written()["serving"]["max_new_tokens"] == 1
    assert "the likelihood of one word: clients ask for `logprobs`." in words(text())


def test_unknown_heads_are_split_over_no_gpus(in_folder, text, written):
    files = published("qwen3-embedding-0.6b", WEIGHTS)
    config = {
        name: value
        for name, value in CONFIGS["qwen3-embedding-0.6b"].items()
        if "attention_heads" not in name
    } | {"model_type": "unheard_of"}
    files["config.json"] = json.dumps(config).encode()
    assert in_folder(files, "--instance", "ml.g5.12xlarge")[0] == 0
    assert written()["serving"]["tensor_parallel_degree"] == 1
    reason = "Here: no file tells the attention heads, which a larger degree has to divide."
    assert reason in words(text())


@pytest.fixture
def sparse(in_folder, tmp_path):
    """Runs the command on weights of many gigabytes, of which the disk has the header alone."""

    def command(name, gigabytes, *options):
        size = gigabytes * 1000**3 // 2
        header = {"w": {"dtype": "BF16", "shape": [size], "data_offsets": [0, 2 * size]}}
        text = json.dumps(header).encode()
        files = published(name, {})
        files["model.safetensors"] = struct.pack("<Q", len(text)) + text
        (tmp_path / "mine").mkdir()
        with (tmp_path / "mine" / "model.safetensors").open("wb") as file:
            file.truncate(8 + len(text) + 2 * size)
        for path, content in files.items():
            with (tmp_path / "mine" / path).open("r+b" if path.endswith("s") else "wb") as file:
                file.write(content)
        return in_folder({}, *options)

    return command


@pytest.mark.parametrize(
    ("gigabytes", "instance", "degree", "seconds"),
    [
        (10, "ml.g6.xlarge", 1, 1800),
        (60, "ml.g6.12xlarge", 4, 1800),
        (250, "ml.p4d.24xlarge", 8, 3600),
        (640, "ml.g7e.48xlarge", 8, 3600),
    ],
)
def test_the_type_follows_the_size(sparse, written, gigabytes, instance, degree, seconds):
    code, _, errors = sparse("gemma-3-12b-it", gigabytes)
    assert (code, errors) == (0, "")
    content = written()
    assert content["endpoint"]["instances"] == [instance]
    assert content["serving"]["tensor_parallel_degree"] == degree
    endpoint = content["endpoint"]
    assert endpoint["container_startup_health_check_timeout_seconds"] == seconds


def test_no_type_holds_everything(sparse):
    code, printed, errors = sparse("gemma-3-12b-it", 5000)
    assert (code, printed) == (1, "")
    assert "2,500,000,000,000 weights in bf16 take 4656.6 GiB" in errors
    assert "    Use a smaller model: no instance type has the memory.\n" in errors


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            {"architectures": ["OwnForCausalLM"]},
            "has no code for the network OwnForCausalLM [SW349]",
        ),
        ({"num_key_value_heads": 5}, "16 attention heads are no multiple of 5 key/value heads"),
        ({"hidden_size": 10**9}, "model.hidden_size: 1000000000 is out of range: at most 100000"),
        ({"model_type": "a: b\n# c"}, r'model.family: "a: b\n# c" does not have the form'),
    ],
)
def test_what_keeps_every_type_from_fitting_is_told(in_folder, text, setting, message):
    files = published("qwen3-embedding-0.6b", WEIGHTS)
    del files["modules.json"]
    config = json.loads(files["config.json"])
    files["config.json"] = json.dumps(config | setting).encode()
    code, printed, errors = in_folder(files)
    assert (code, printed) == (1, "")
    assert message in errors


def test_all_that_the_files_do_not_say_is_named_together(in_folder):
    files = published("gemma-3-12b-it", WEIGHTS)
    files["pytorch_model.bin"] = files.pop("model.safetensors")
    code, _, errors = in_folder(files)
    assert (code, errors) == (
        1,
        "1 problem\n- mine has neither a model.safetensors nor an index of weights; "
        "some options are missing, and there is no terminal to ask for them [SW410]\n"
        "    Give --parameters, --instance.\n",
    )
    files["config.json"] = b"{}"
    errors = in_folder(files)[2]
    assert "- mine has no config.json with a model_type; some options are missing" in errors


def test_a_limit_that_is_no_number_is_none(in_folder, written):
    files = published("qwen3-30b-a3b-fp8", WEIGHTS)
    files["generation_config.json"] = b'{"max_new_tokens": true}'
    assert in_folder(files)[0] == 0
    assert written()["serving"]["max_new_tokens"] is not True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gated": True}, f"{REPOSITORY} is gated [SW611]\n    Accept its conditions at "),
        ({"status": 503}, f"the Hub answers 503 about {REPOSITORY} [SW612]\n"),
    ],
)
def test_a_hub_that_does_not_tell_says_why(run, hub, config, change, message):
    for name, value in change.items():
        setattr(hub, name, value)
    code, _, errors = run("--hub", REPOSITORY, *LATENCY)
    assert code == 1
    assert errors.startswith(f"1 problem\n- {message}")
    assert not config.exists()


def test_weights_are_named_once(run, hub):
    code, _, errors = run("--hub", REPOSITORY, "--weights", "mine", *LATENCY)
    assert (code, errors) == (
        1,
        "1 problem\n- `--hub` and `--weights` both name weights [SW409]\n    Give one of them.\n",
    )


def test_a_commit_of_the_hub_is_read_unless_all_is_said(accepted, hub, written):
    weights = ("--weights", f"hub:{REPOSITORY}@{REVISION}")
    accepted(*weights, *LATENCY)
    assert written()["model"]["family"] == "gemma3"
    hub.requests.clear()
    network = ("--family", "llama", "--parameters", "6738415616", "--instance", "ml.g5.12xlarge")
    accepted(*weights, *LATENCY, *network, "--overwrite")
    assert hub.requests == []


# `slipway fit`

GOAL = ("--rate", "2", "--p99", "20000", "--tokens", "500,200")
NETWORK = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16",
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "num_hidden_layers": 2, "vocab_size": 1000, "max_position_embeddings": 40960,
    "tie_word_embeddings": False, "use_sliding_window": False, "sliding_window": None,
}  # fmt: skip
FILES = {
    **published("gemma-3-12b-it", WEIGHTS),
    "config.json": json.dumps(NETWORK).encode(),
}


@pytest.fixture
def fit(run, serve_hub, slipway_command):
    def command(repository, files, *arguments):
        serve_hub(files)
        return slipway_command("fit", "--hub", repository, *GOAL, *arguments, "--json")

    return command


def test_a_checkpoint_of_the_hub_is_ranked(fit):
    types = "ml.g6e.xlarge,ml.g4dn.xlarge"
    code, output, errors = fit(REPOSITORY, FILES, "--instances", types)
    assert (code, errors) == (0, "")
    (ranked,) = json.loads(output)["ranked"]
    assert ranked["instance_type"] == "ml.g6e.xlarge"
    # The batch is what fits, and not the 16 of a first config.
    assert ranked["largest_batch"] == 64


def test_weights_that_do_not_hold_the_embeddings_are_refused(fit):
    network = json.dumps({**NETWORK, "vocab_size": 200_000}).encode()
    code, output, _ = fit(REPOSITORY, {**FILES, "config.json": network})
    assert code == 1
    (problem,) = json.loads(output)["problems"]
    assert problem["message"] == (
        "nothing can be predicted: 2,000,000 weights are fewer than the embeddings"
    )


def test_a_repository_that_is_missing_is_named(fit):
    code, output, _ = fit("no/such", FILES)
    assert code == 1
    assert json.loads(output)["problems"][0]["code"] == "SW610"
