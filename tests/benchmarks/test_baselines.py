"""The published layout: nginx's configuration, and the application on PyTorch."""

import importlib.util
import os

import pytest

from benchmarks.baselines import stack
from benchmarks.errors import BenchmarkError
from benchmarks.neuron.design import MIXED
from benchmarks.neuron.design import SAMPLE as SAMPLE_BERT
from benchmarks.neuron.models import make as make_encoder
from benchmarks.neuron.workloads import make_requests, read_answer
from benchmarks.tensorrt.design import GPT2_SMALL
from benchmarks.tensorrt.models import make
from benchmarks.tensorrt.workloads import Request, generated_tokens
from containers.neuron.predictor import NeuronPredictor
from containers.neuron.settings import NeuronSettings
from containers.tensorrt.generation import Prompt, generate
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession
from tests.support.groups import load

REQUEST = Request(((5, 6, 7), (8, 9, 10)), new_tokens=6)


def test_nginx_passes_requests_on_and_keeps_its_files_in_the_folder(tmp_path):
    text = stack.nginx_configuration(tmp_path, 8123, 300.0)
    assert "listen 127.0.0.1:8123;" in text
    assert f"server unix:{tmp_path}/gunicorn.sock;" in text
    assert "proxy_read_timeout 300s;" in text
    assert "proxy_set_header Host $http_host;" in text
    for line in text.splitlines():
        if "_path" in line or line.startswith("pid"):
            assert f" {tmp_path}/" in line


@pytest.mark.parametrize(("user_id", "expected"), [(0, True), (1000, False)])
def test_nginxs_workers_may_look_into_roots_folder(user_id, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: user_id)
    monkeypatch.setattr("getpass.getuser", lambda: "somebody")
    assert ("user somebody;" in stack.nginx_configuration(tmp_path, 1, 1.0)) is expected


def test_every_missing_package_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setattr(stack, "find_nginx", lambda: "/usr/sbin/nginx")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if "g" in name else name)
    with pytest.raises(BenchmarkError) as caught:
        stack.check_requirements("bench-tensorrt")
    assert str(caught.value) == (
        "gunicorn is not installed: run `make bench-tensorrt`, or install requirements-bench.txt "
        "without its dependencies (`pip install --no-deps --requirement requirements-bench.txt`)"
    )


def test_nginx_is_also_found_where_only_root_looks(tmp_path, monkeypatch):
    program = tmp_path / "nginx"
    program.write_text("#!/bin/sh\necho 'nginx version: nginx/1.22.1 (Debian)' >&2\n")
    program.chmod(0o755)
    monkeypatch.setattr(stack, "_SYSTEM_FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(stack, "program_path", lambda: "/nowhere")
    assert stack.find_nginx() == str(program)
    assert stack.nginx_version() == "1.22.1"


@pytest.fixture
def application(tmp_path):
    """Makes a client of a baseline's application; the model's directory is the `model` below."""
    torch = load("torch", group="torch")
    load("transformers", group="torch")
    ready = tmp_path / "ready"
    ready.mkdir()
    (tmp_path / "model").mkdir()
    threads = torch.get_num_threads()

    def make(create_app, **variables):
        places = {stack.MODEL_DIRECTORY: tmp_path / "model", stack.READY_DIRECTORY: ready}
        environ = {name: str(place) for name, place in places.items()}
        app = create_app({**environ, stack.THREADS: "1", **variables})
        assert torch.get_num_threads() == 1
        assert [path.name for path in ready.iterdir()] == [str(os.getpid())]
        client = app.test_client()
        assert client.get("/ping").status_code == 200
        return lambda body: (
            client.post("/invocations", data=body, content_type="application/json").text
        )

    yield make
    torch.set_num_threads(threads)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_application_gives_what_the_decode_loop_gives(application, tmp_path):
    from benchmarks.baselines.published import create_app

    model = tmp_path / "model"
    make(GPT2_SMALL, model, 1)
    config = read_config(model)
    session = OnnxRuntimeSession(model, config, intra_op_threads=1)
    prompts = [Prompt(tuple(prompt), 6) for prompt in REQUEST.prompts]
    found = generate(session, prompts, eos_token_ids=config.eos_token_ids)
    expected = tuple(tuple(tokens) for [tokens] in found)
    for cache in ("true", "false"):
        ask = application(create_app, **{stack.CACHE: cache})
        assert generated_tokens(REQUEST, ask(REQUEST.body)) == expected


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_naive_server_gives_what_the_container_gives(application, tmp_path):
    from benchmarks.baselines.torch_script import create_app

    model = tmp_path / "model"
    make_encoder(SAMPLE_BERT, model, 1)
    predictor = NeuronPredictor(NeuronSettings(), max_batch_size=6)
    try:
        predictor.load(model)
        ask = application(create_app)
        for request in make_requests(MIXED, model / "tokenizer.json", 1):
            outputs = predictor.predict(predictor.parse(request.body.encode()))
            ours = read_answer(request, predictor.render(outputs).decode())
            assert read_answer(request, ask(request.body)).agrees_with(ours)
    finally:
        predictor.close()
