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
from containers.neuron.predictor import EncoderPredictor
from containers.neuron.settings import EncoderSettings
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
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(stack, "_SYSTEM_FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(stack, "program_path", lambda: "/nowhere")
    assert stack.find_nginx() == str(program)


def test_nginxs_version_is_read(tmp_path, monkeypatch):
    program = tmp_path / "nginx"
    program.write_text("#!/bin/sh\necho 'nginx version: nginx/1.22.1 (Debian)' >&2\n")
    program.chmod(0o755)
    monkeypatch.setattr(stack, "find_nginx", lambda: str(program))
    assert stack.nginx_version() == "1.22.1"


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_application_gives_what_the_decode_loop_gives(tmp_path):
    torch = load("torch", group="torch")
    load("transformers", group="torch")
    from benchmarks.baselines.published import create_app

    model, ready = tmp_path / "model", tmp_path / "ready"
    model.mkdir()
    ready.mkdir()
    make(GPT2_SMALL, model, 1)
    config = read_config(model)
    session = OnnxRuntimeSession(model, config, intra_op_threads=1)
    prompts = [Prompt(tuple(prompt), 6) for prompt in REQUEST.prompts]
    found = generate(session, prompts, eos_token_ids=config.eos_token_ids)
    expected = tuple(tuple(tokens) for [tokens] in found)
    threads = torch.get_num_threads()
    try:
        for cache in ("true", "false"):
            app = create_app(
                {
                    stack.MODEL_DIRECTORY: str(model),
                    stack.CACHE: cache,
                    stack.THREADS: "1",
                    stack.READY_DIRECTORY: str(ready),
                }
            )
            assert torch.get_num_threads() == 1
            client = app.test_client()
            assert client.get("/ping").status_code == 200
            response = client.post(
                "/invocations", data=REQUEST.body, content_type="application/json"
            )
            assert generated_tokens(REQUEST, response.text) == expected
    finally:
        torch.set_num_threads(threads)
    assert [path.name for path in ready.iterdir()] == [str(os.getpid())]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_naive_server_gives_what_the_container_gives(tmp_path):
    torch = load("torch", group="torch")
    load("transformers", group="torch")
    from benchmarks.baselines.torch_script import create_app

    model, ready = tmp_path / "model", tmp_path / "ready"
    model.mkdir()
    ready.mkdir()
    make_encoder(SAMPLE_BERT, model, 1)
    requests = make_requests(MIXED, model / "tokenizer.json", 1)
    predictor = EncoderPredictor(EncoderSettings(), max_batch_size=6)
    threads = torch.get_num_threads()
    try:
        predictor.load(model)
        app = create_app(
            {
                stack.MODEL_DIRECTORY: str(model),
                stack.THREADS: "1",
                stack.READY_DIRECTORY: str(ready),
            }
        )
        client = app.test_client()
        assert client.get("/ping").status_code == 200
        for request in requests:
            response = client.post(
                "/invocations", data=request.body, content_type="application/json"
            )
            outputs = predictor.predict(predictor.parse(request.body.encode()))
            ours = read_answer(request, predictor.render(outputs).decode())
            assert read_answer(request, response.text).agrees_with(ours)
    finally:
        torch.set_num_threads(threads)
        predictor.close()
    assert [path.name for path in ready.iterdir()] == [str(os.getpid())]
