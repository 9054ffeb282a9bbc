"""The LMI benchmark: what is measured, by which command line, and what is looked for before."""

import json
import os
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.lmi import __main__ as program
from benchmarks.lmi import djl
from benchmarks.lmi.design import BASELINE, TRANSFERS, Part, System, full_design
from benchmarks.lmi.djl import find_djl_serving, package
from benchmarks.lmi.prompts import BODIES, PROMPTS, completion
from benchmarks.program import ROOT
from slipway import java_properties

FULL = full_design(parts=tuple(Part), trials=3, transfer_trials=4, cores=2, seed=1)
OTHER_PART = "`--part weights` measures the other part without it."


def test_the_full_design_is_of_two_gigabytes_in_five_files():
    assert FULL.weights_bytes == 2_000_000_000
    assert FULL.shards == 5
    assert FULL.block_bytes % 4 == 0
    # An archive of all of it beside what was extracted.
    assert 4_000_000_000 < FULL.disk_bytes < 8_000_000_000


def test_every_round_has_everything_once_in_an_order_of_its_own():
    systems, transfers = FULL.serving_rounds(), FULL.transfer_rounds()
    assert [sorted(each) for each in systems] == [sorted(System)] * 3
    assert [set(each) for each in transfers] == [set(TRANSFERS)] * 4
    assert all(len(each) == len(TRANSFERS) for each in transfers)
    assert len({tuple(each) for each in transfers}) > 1
    assert FULL.serving_rounds() == systems
    assert BASELINE in TRANSFERS


def test_a_part_that_is_left_out_has_no_rounds():
    alone = replace(FULL, parts=(Part.WEIGHTS,))
    assert alone.serving_rounds() == []
    assert len(alone.transfer_rounds()) == alone.transfer_trials


def test_results_of_a_part_or_of_a_quick_run_are_not_the_committed_ones():
    results, build = ROOT / "benchmarks" / "results", ROOT / "build" / "benchmarks"
    assert program.parse([]).output == results
    assert program.parse(["--quick"]).output == build / "quick"
    assert program.parse(["--part", "serving"]).output == build / "quick"
    assert program.parse(["--part", "serving", "--output", "x"]).output == Path("x")


def test_an_unknown_part_is_named_and_ends_with_1(capsys):
    with pytest.raises(SystemExit) as caught:
        program.main(["--part", "all"])
    assert caught.value.code == 1
    assert "argument --part: invalid Part value: 'all'" in capsys.readouterr().err


def test_without_djl_serving_the_run_says_what_to_set(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("DJL_SERVING_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert program.main(["--quick", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "The benchmark ended early: The serving part needs a DJL Serving, and there is none. Run "
        "`make djl-serving`, or extract https://publish.djl.ai/djl-serving/serving-0.36.0.tar and "
        "set DJL_SERVING_HOME to the absolute path of its directory (docs/embedded-aws/lmi.md). "
        f"{OTHER_PART}\n"
    )
    assert list(tmp_path.iterdir()) == []


def make_home(folder: Path, version: str) -> Path:
    home = folder / version
    for name in ("bin", "lib"):
        (home / name).mkdir(parents=True)
    (home / "lib" / f"serving-{version}.jar").touch()
    make_program(home / "bin" / "serving", "true")
    return home


def make_program(path: Path, line: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def environ(tmp_path) -> dict[str, str]:
    """A DJL Serving, a Java and a Python that have everything, as far as anybody looks."""
    home = make_home(tmp_path, "0.36.0")
    java = make_program(
        tmp_path / "java" / "bin" / "java", """echo 'openjdk version "17.0.1" 2021' >&2"""
    )
    found = {name: metadata.version(name) for name in ("numpy", "onnxruntime", "tokenizers")}
    found |= {"torch": "2.13.0", "transformers": "5.23.0", "peft": "0.21.2", "pillow": "13.0.0"}
    lines = "\\n".join(f"{name} {version}" for name, version in found.items())
    python = make_program(tmp_path / "python", f"printf '{lines}\\n'")
    return {
        "DJL_SERVING_HOME": str(home),
        "JAVA_HOME": str(java.parents[1]),
        "SLIPWAY_DJL_PYTHON": str(python),
        "PATH": os.defpath,
    }


def test_the_first_home_that_is_new_enough_is_taken(environ, tmp_path):
    old = make_home(tmp_path, "0.23.0")
    homes = os.pathsep.join((str(old), environ["DJL_SERVING_HOME"]))
    found = find_djl_serving(environ | {"DJL_SERVING_HOME": homes})
    assert (found.version, found.java) == ("0.36.0", "17.0.1")
    assert str(found.home) == environ["DJL_SERVING_HOME"]
    assert found.packages["peft"] == "0.21.2"


def test_homes_that_are_too_old_are_named(environ, tmp_path):
    homes = os.pathsep.join(str(make_home(tmp_path, each)) for each in ("0.23.0", "0.27.0"))
    with pytest.raises(BenchmarkError) as caught:
        find_djl_serving(environ | {"DJL_SERVING_HOME": homes})
    assert str(caught.value).startswith(
        "There is DJL Serving 0.23.0, 0.27.0; the handler that is measured needs 0.36 or later. "
        "Run `make djl-serving`, or extract https://"
    )


def test_a_home_that_is_none_is_named(environ, tmp_path):
    with pytest.raises(BenchmarkError) as caught:
        find_djl_serving(environ | {"DJL_SERVING_HOME": str(tmp_path / "nowhere")})
    assert str(caught.value).startswith(
        f"DJL_SERVING_HOME names {tmp_path}/nowhere, which has no program bin/serving with one "
        "lib/serving-VERSION.jar. Run `make djl-serving`, or extract https://"
    )


def test_a_java_that_is_missing_is_named(environ):
    with pytest.raises(BenchmarkError, match="JAVA_HOME is /nowhere, which has no program"):
        find_djl_serving(environ | {"JAVA_HOME": "/nowhere"})


def test_what_the_handlers_interpreter_lacks_is_named(environ, tmp_path):
    bare = make_program(tmp_path / "bare", "printf 'numpy 2.0\\ntorch 2.13.0\\n'")
    with pytest.raises(BenchmarkError) as caught:
        find_djl_serving(environ | {"SLIPWAY_DJL_PYTHON": str(bare)})
    assert str(caught.value) == (
        f"{bare} has no onnxruntime, tokenizers, transformers, peft, pillow, which DJL Serving's "
        "handlers import. Set SLIPWAY_DJL_PYTHON to a Python that has numpy, onnxruntime, "
        "tokenizers, torch, transformers, peft, pillow: `make export` installs them in .venv. "
        f"{OTHER_PART}"
    )


def test_an_interpreter_that_is_none_is_named(environ):
    with pytest.raises(BenchmarkError) as caught:
        find_djl_serving(environ | {"SLIPWAY_DJL_PYTHON": "/nowhere/python"})
    assert str(caught.value).startswith(
        "SLIPWAY_DJL_PYTHON is /nowhere/python, which does not run: [Errno 2]"
    )


def test_servers_that_would_not_compute_the_same_are_refused(environ, monkeypatch):
    versions = {"numpy": metadata.version("numpy"), "onnxruntime": "0.1"}
    monkeypatch.setattr(
        djl.metadata, "version", lambda name: versions.get(name, "as it is"), raising=True
    )
    with pytest.raises(BenchmarkError) as caught:
        find_djl_serving(environ)
    message = str(caught.value)
    assert f"and {sys.executable} has 0.1, so that the servers would not compute" in message
    assert "Install onnxruntime==0.1 there." in message


def test_packages_differ_in_what_is_compared_alone():
    given = {
        system: package(system, Path("/m"), threads=2, max_batch_size=8)
        for system in System
        if system.is_djl
    }
    properties = {
        system: java_properties.parse(files["serving.properties"])
        for system, files in given.items()
    }
    common = {"engine": "Python", "minWorkers": "1", "maxWorkers": "1", "option.model_id": "/m"}
    single = common | {"option.intra_op_threads": "2"}
    assert properties[System.DJL_GRAPH_SINGLE] == single
    assert properties[System.DJL_GRAPH] == single | {"batch_size": "8", "max_batch_delay": "10"}
    assert properties[System.DJL_TRANSFORMERS] == common | {
        "option.entryPoint": "djl_python.huggingface",
        "option.rolling_batch": "disable",
        "option.dtype": "fp32",
    }
    assert properties[System.DJL_TRANSFORMERS_BATCHES] == properties[System.DJL_TRANSFORMERS] | {
        "batch_size": "8",
        "max_batch_delay": "10",
    }
    assert list(given[System.DJL_TRANSFORMERS]) == ["serving.properties"]
    assert given[System.DJL_GRAPH]["model.py"] == given[System.DJL_GRAPH_SINGLE]["model.py"]


def test_a_prompt_that_is_repeated_is_no_part_of_the_answer():
    added = json.dumps([{"generated_text": " of a bucket"}])
    repeated = json.dumps([{"generated_text": f"{PROMPTS[3]} of a bucket"}])
    assert completion(3, added) == completion(3, repeated) == " of a bucket"
    assert [json.loads(body)["inputs"] for body in BODIES] == list(PROMPTS)


@pytest.mark.parametrize("answer", ["", "{}", "[]", '[{"text": "a"}]', '[{"generated_text": 1}]'])
def test_what_is_no_answer_ends_the_benchmark(answer):
    with pytest.raises(BenchmarkError, match="not an answer to 'Amazon S3 bucket': "):
        completion(0, answer)


def test_an_answer_that_adds_nothing_ends_the_benchmark():
    answer = json.dumps([{"generated_text": PROMPTS[0]}])
    with pytest.raises(BenchmarkError, match="nothing was added to 'Amazon S3 bucket'"):
        completion(0, answer)
