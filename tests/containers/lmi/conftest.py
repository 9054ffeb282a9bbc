"""The handler's directory alone, as in the container, with stand-ins for the libraries."""

import importlib
import shutil
import sys
from pathlib import Path

import pytest

from tests.containers.lmi import libraries
from tests.containers.lmi.libraries import GPT2
from tests.containers.lmi.server import STAND_IN_INPUTS, Server, StandInOutput

HANDLER = Path("containers/lmi/handler")


@pytest.fixture
def journal():
    return libraries.Journal()


@pytest.fixture
def load_script(tmp_path, monkeypatch):
    """Imports model.py of a copied directory, with `modules` in place of the image's libraries."""
    before = set(sys.modules)

    def load(*modules):
        directory = tmp_path / "model"
        shutil.copytree(HANDLER, directory, ignore=shutil.ignore_patterns("__pycache__"))
        monkeypatch.syspath_prepend(directory)
        for module in modules:
            # Left alone where it is the real one: undone, it would be put back for good.
            if sys.modules.get(module.__name__) is not module:
                monkeypatch.setitem(sys.modules, module.__name__, module)
        return importlib.import_module("model")

    yield load
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def deepspeed_server(load_script, journal):
    def make(config=GPT2, *, version="0.25", djl=None):
        torch = libraries.torch(journal)
        script = load_script(
            torch,
            libraries.deepspeed(journal, torch),
            libraries.transformers(journal, config),
            djl or libraries.module("djl_python", Output=StandInOutput),
        )
        return Server(script.handle, djl.Input if djl else STAND_IN_INPUTS[version], version)

    return make


@pytest.fixture
def server(deepspeed_server):
    return deepspeed_server().started()


@pytest.fixture
def fastertransformer_server(load_script, journal):
    def make(release, config=GPT2, *, version="", djl=None):
        version = version or ("0.24" if release == "0.24" else "0.21")
        script = load_script(
            libraries.torch(journal),
            libraries.fastertransformer(journal, release, config["model_type"]),
            libraries.transformers(journal, config),
            djl or libraries.module("djl_python", Output=StandInOutput),
        )
        return Server(script.handle, djl.Input if djl else STAND_IN_INPUTS[version], version)

    return make
