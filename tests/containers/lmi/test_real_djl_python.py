"""The handlers over the real `djl_python.Input` and `Output`, with stand-ins for the engines.

The package is in the jar `ai.djl.python:python`, which Python imports from as it is. Maven Central
has three releases of it: 0.20.0 names the parts of a batch as 0.21 to 0.23 do, 0.25.0 as 0.25 to
0.27, 0.34.0 is the newest. `DJL_PYTHON` names another directory with such jars.
"""

import importlib
import os
import sys
from pathlib import Path

import pytest

JARS = Path(os.environ.get("DJL_PYTHON", "build/djl_python"))
# Release, and whose way of naming the parts of a batch it has.
RELEASES = {"0.20.0": "0.21", "0.25.0": "0.25", "0.34.0": "0.25"}


@pytest.fixture(params=RELEASES)
def release(request):
    return str(request.param)


@pytest.fixture
def djl_python(release, monkeypatch):
    jar = JARS / f"python-{release}.jar"
    monkeypatch.syspath_prepend(jar)
    package = importlib.import_module("djl_python")
    assert str(jar) in str(package.__file__)
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "djl_python"]:
        del sys.modules[name]


@pytest.mark.djl
@pytest.mark.parametrize("handler", ["deepspeed", "fastertransformer"])
def test_calls_and_answers_fit_the_real_classes(
    djl_python, release, handler, deepspeed_server, fastertransformer_server
):
    if handler == "deepspeed":
        server = deepspeed_server(version=RELEASES[release], djl=djl_python)
    else:
        server = fastertransformer_server("0.23", version=RELEASES[release], djl=djl_python)
    assert server.start(tensor_parallel_degree="2") is None
    one = {"inputs": ["abc", "x"], "parameters": {"max_new_tokens": 2}}
    two = {"inputs": "caf\u00e9 m", "parameters": {"max_new_tokens": 1, "return_full_text": True}}
    first = [{"generated_text": "de"}, {"generated_text": "yz"}]
    second = [{"generated_text": "caf\u00e9 mn"}]

    assert server.post(one) == (200, first)
    assert server.post(two) == (200, second)
    assert server.post_together(two, one) == [(200, second), (200, first)]
    status, document = server.post({"inputs": []})
    assert (status, document["error"]["code"]) == (400, "invalid_request")
    answers = server.post_together(one, {"inputs": []}, two)
    assert answers[0] == (200, first)
    assert answers[1] == (200, document)
    assert answers[2] == (200, second)
    assert [status for status, _ in server.post_together({}, {})] == [400, 400]
    assert server.post({"inputs": "poison!"})[0] == 500
