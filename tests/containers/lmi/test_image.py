"""Our LMI image: its Dockerfile, and that what it copies is where the server finds it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.embedded_aws.hosting.families import find_program, programs
from slipway.embedded_aws.hosting.families.lmi import djl_serving
from slipway.image_sources import copy_image_files
from slipway.planning.families.lmi.handlers import OUR_HANDLERS
from slipway.stacks.image_stack import SERVING_TARGET
from tests.support.dockerfiles import instructions

ROOT = Path(__file__).parents[3]
INSIDE = "/opt/slipway/handler"


def test_it_is_the_base_with_the_handler_and_starts_as_the_base_does():
    """Another entry point would lose what the base's does before the server, CUDA's libraries."""
    assert instructions("lmi") == [
        ("ARG", "BASE_IMAGE"),
        ("FROM", f"${{BASE_IMAGE}} AS {SERVING_TARGET}"),
        ("COPY", f"containers/lmi/handler {INSIDE}"),
        ("RUN", f"python3 -m compileall -q --invalidation-mode unchecked-hash {INSIDE}"),
        ("ENV", f"PYTHONPATH={INSIDE}${{PYTHONPATH:+:${{PYTHONPATH}}}}"),
    ]


@pytest.fixture
def image(tmp_path):
    """The handler's directory in the image, made as the Dockerfile makes it of the sources."""
    copy_image_files(ROOT, "lmi", tmp_path / "context")
    (copied,) = (arguments.split() for name, arguments in instructions("lmi") if name == "COPY")
    source, target = copied
    inside = tmp_path / target.lstrip("/")
    inside.parent.mkdir(parents=True)
    (tmp_path / "context" / source).rename(inside)
    (command,) = (arguments.split() for name, arguments in instructions("lmi") if name == "RUN")
    assert command[0] == "python3"
    subprocess.run([sys.executable, *command[1:-1], inside], check=True)
    return inside


def test_every_module_was_compiled_and_is_not_compiled_again(image):
    modules = {path.stem for path in image.glob("*.py")}
    compiled = list((image / "__pycache__").glob("*.pyc"))
    assert {path.name.partition(".")[0] for path in compiled} == modules
    # Flags of PEP 552: by hash, and not checked.
    assert {path.read_bytes()[4] for path in compiled} == {1}


@pytest.mark.parametrize("handler", OUR_HANDLERS.values(), ids=lambda handler: handler.replaces)
def test_the_server_finds_the_module_that_packages_name(image, handler, tmp_path):
    """As djl_python/service_loader.py does: a module's name, on the PYTHONPATH, `handle` in it."""
    libraries = Path(__file__).parent / "real" / "stand_ins"
    package = tmp_path / "package"
    package.mkdir()
    djl = tmp_path / "djl" / "djl_python"
    djl.mkdir(parents=True)
    (djl / "__init__.py").write_text("class Output: ...\n")
    (variable,) = (arguments for name, arguments in instructions("lmi") if name == "ENV")
    path = re.sub(r"\$\{PYTHONPATH:\+:\$\{PYTHONPATH\}\}$", "", variable.partition("=")[2])
    assert path == INSIDE
    search = [image, ROOT, libraries / "common", libraries / handler.replaces, djl.parent, package]
    script = (
        "import importlib, sys\n"
        f"module = importlib.import_module({handler.module!r})\n"
        "print(module.__file__, callable(module.handle))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=package,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, search))},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [str(image / f"{handler.module}.py"), "True"]


def test_the_embedded_aws_runs_the_handler_of_the_checkout():
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/slipway/lmi:0.23.0-deepspeed0.9.5-cu118-0"
    program = find_program(programs(), image)
    assert program.command == djl_serving.COMMAND
    handlers = Path(program.environment["PYTHONPATH"])
    assert handlers.resolve() == ROOT / "containers" / "lmi" / "handler"
    managed = find_program(programs(), image.replace("slipway/lmi", "djl-inference"))
    assert {**managed.environment, "PYTHONPATH": program.environment["PYTHONPATH"]} == (
        program.environment
    )
