"""Triton model repositories with one fault each, and what Slipway says of them.

The texts are in triton_repositories.txt; `python -m tests.unit.planning.triton_repositories` writes
it.

The real server gets the same repositories (tests/embedded/hosting/test_triton_repositories.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slipway.planning.directory import Directory, DirectoryFindings
from slipway.planning.families.triton.repository import check_repository

REPORT = Path(__file__).with_suffix(".txt")
ECHO = """\
name: "echo"
backend: "python"
max_batch_size: 8
input [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "ANSWER" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""
PIPELINE = """\
platform: "ensemble"
max_batch_size: 8
input [ { name: "RAW" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "CLEAN" data_type: TYPE_STRING dims: [ 1 ] } ]
ensemble_scheduling {
  step [
    {
      model_name: "echo"
      model_version: -1
      input_map { key: "TEXT" value: "RAW" }
      output_map { key: "ANSWER" value: "between" }
    },
    {
      model_name: "again"
      model_version: -1
      input_map { key: "TEXT" value: "between" }
      output_map { key: "ANSWER" value: "CLEAN" }
    }
  ]
}
"""
MODEL = """\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("ANSWER", pb_utils.get_input_tensor_by_name(r, "TEXT").as_numpy())]
            )
            for r in requests
        ]
"""


def echo(old: str = "", new: str = "", *, name: str = "echo") -> dict[str, str]:
    """Returns a model that answers its input, with a change of its config.pbtxt."""
    assert old in ECHO
    config = ECHO.replace(old, new, 1) if old else ECHO + new
    config = config.replace('name: "echo"', f'name: "{name}"', 1)
    return {f"{name}/config.pbtxt": config, f"{name}/1/model.py": MODEL}


def environment(path: str) -> str:
    """Returns the parameter that names the archive of a model's Python."""
    return f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{path}" }} }}\n'


def pipeline(old: str = "", new: str = "") -> dict[str, str]:
    """Returns an ensemble of two models, with a change of its config.pbtxt."""
    assert old in PIPELINE
    changed = {"pipeline/config.pbtxt": PIPELINE.replace(old, new, 1), "pipeline/1/README.md": ""}
    return {**changed, **echo(), **echo(name="again")}


@dataclass(frozen=True)
class Case:
    """A repository: its files by path, and directories without files.

    The real server loads every model of what it takes, although Slipway refuses it. It does not
    have what a case needs to be judged.
    """

    files: Mapping[str, str]
    default_model: str | None = None
    empty: tuple[str, ...] = ()
    server_takes: bool = False
    needs: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)


def ensemble(old: str = "", new: str = "") -> Case:
    """Returns the case of `pipeline`, which answers."""
    return Case(pipeline(old, new), default_model="pipeline")


def check(case: Case, release: str = "24.09") -> DirectoryFindings:
    """Checks the repository of a case as `triton/own`."""
    texts = {path: content.encode() for path, content in case.files.items()}
    directory = Directory(
        "triton/own",
        ("serving", "repository"),
        {path: len(content) for path, content in texts.items()},
        {path: content for path, content in texts.items() if path.endswith("config.pbtxt")},
        case.empty,
        {path for path, content in texts.items() if content.startswith(b"version https://git-lfs")},
    )
    return check_repository(
        directory, default_model=case.default_model, release=release, variables=case.variables
    )


def report() -> str:
    """Returns what is found in each case, as the file beside this one has it."""
    lines = []
    for name, case in CASES.items():
        findings = check(case)
        lines.append(f"# {name}")
        lines += map(str, findings.problems)
        lines += (f"warning {warning.code}: {warning.message}" for warning in findings.warnings)
        lines.append("")
    return "\n".join(lines)


_LAYOUT = "AWS's script, which judges the layout"
_WAITING = "a newer server: 2.51 waits for a Python model without end"
CASES: Mapping[str, Case] = {
    "a model": Case(echo()),
    "no name": Case(echo('name: "echo"\n', "")),
    "comments and every way to write": Case(
        echo(
            "max_batch_size: 8",
            """\
# eight
max_batch_size: 0x8;
default_model_filename: "model" '.py' # joined
version_policy < latest: { num_versions: 010 } >,
response_cache { enable: false }
parameters { key: "a" value { string_value: "\\xc3\\xa9\\u00e9\\n" } }
parameters [ { key: "b", value: { string_value: "" } } ]
""",
        )
    ),
    "an ensemble": ensemble(),
    "a model beside": Case({**echo(), **echo(name="again")}, default_model="echo"),
    "a directory of labels": Case(
        {**echo(), "echo/labels/words.txt": "a", "echo/10/model.py": MODEL}
    ),
    "a dimension that varies": Case(echo("dims: [ 1 ]", "dims: [ - 1 ]")),
    "a backend of its own": Case(
        {"echo/config.pbtxt": ECHO.replace('"python"', '"mine"'), "echo/1/libtriton_mine.so": ""},
        needs="a backend that loads",
    ),
    "an ONNX model that says the rest": Case(
        {
            "net/config.pbtxt": 'platform: "onnxruntime_onnx"\ndynamic_batching {}\n',
            "net/1/model.onnx/model.onnx": "",
        },
        needs="the ONNX backend",
    ),
    "an engine for each GPU": Case(
        {
            "net/config.pbtxt": 'backend: "tensorrt"\n'
            'cc_model_filenames { key: "7.5" value: "t4.plan" }\n',
            "net/1/t4.plan": "a",
        },
        needs="the TensorRT backend",
    ),
    "a config at the root": Case({**echo(), "config.pbtxt": ECHO}, needs=_LAYOUT),
    "no model": Case({"README.md": ""}, needs=_LAYOUT),
    "two models and no default": Case({**echo(), **echo(name="again")}, needs=_LAYOUT),
    "a default that is not there": Case(echo(), default_model="ecko", needs=_LAYOUT),
    "no config": Case({"echo/1/model.py": MODEL}, needs="a model that completes itself"),
    "no version": Case({"echo/config.pbtxt": ECHO}),
    "a version from zero": Case({"echo/config.pbtxt": ECHO, "echo/01/model.py": MODEL}),
    "a version called v1": Case(
        {"echo/config.pbtxt": ECHO, "echo/v1/model.py": MODEL, "echo/labels/words.txt": ""}
    ),
    "an empty version": Case({"echo/config.pbtxt": ECHO}, empty=("echo/1",)),
    "a version with an empty directory": Case({"echo/config.pbtxt": ECHO}, empty=("echo/1/data",)),
    "a version that is not there": Case(
        echo(new="version_policy { specific { versions: [ 1, 3 ] } }\n"), server_takes=True
    ),
    "no model file": Case({"echo/config.pbtxt": ECHO, "echo/1/weights.bin": ""}, needs=_WAITING),
    "a file of another name": Case(echo(new='default_model_filename: "main.py"\n'), needs=_WAITING),
    "no file for one of the GPUs": Case(
        {
            "net/config.pbtxt": 'backend: "tensorrt"\ncc_model_filenames '
            '[ { key: "7.5" value: "t4.plan" }, { key: "8.6" value: "a10g.plan" } ]\n',
            "net/1/t4.plan": "a",
        },
        needs="the TensorRT backend",
    ),
    "another name": Case(echo('name: "echo"', 'name: "other"')),
    "an unknown field": Case(echo("max_batch_size", "max_batchsize")),
    "an unknown field within": Case(echo("data_type", "datatype")),
    "an unknown data type": Case(echo("TYPE_STRING", "TYPE_STRNG")),
    "a data type in quotes": Case(echo("TYPE_STRING", '"TYPE_STRING"')),
    "no data type": Case(echo("data_type: TYPE_STRING", "")),
    "an invalid data type": Case(echo("TYPE_STRING", "TYPE_INVALID")),
    "a dimension of 0": Case(echo("dims: [ 1 ]", "dims: [ 0 ]")),
    "a negative dimension": Case(echo("dims: [ 1 ]", "dims: [ 1, -2 ]")),
    "a dimension in quotes": Case(echo("dims: [ 1 ]", 'dims: [ "1" ]')),
    "no dimensions": Case(echo("dims: [ 1 ]", "")),
    "no name of a tensor": Case(echo('name: "TEXT"', "")),
    "two inputs of a name": Case(
        echo("} ]\noutput", '}, { name: "TEXT" data_type: TYPE_INT32 dims: 1 } ]\noutput'),
        server_takes=True,
    ),
    "a negative batch": Case(echo("max_batch_size: 8", "max_batch_size: -1")),
    "a batch in quotes": Case(echo("max_batch_size: 8", 'max_batch_size: "8"')),
    "a batch that is a fraction": Case(echo("max_batch_size: 8", "max_batch_size: 8.5")),
    "a batch of 33 bits": Case(echo("max_batch_size: 8", "max_batch_size: 4294967296")),
    "a truth in quotes": Case(echo(new='response_cache { enable: "no" }\n')),
    "a message without braces": Case(echo(new="dynamic_batching: 4\n")),
    "a number with braces": Case(echo("max_batch_size: 8", "max_batch_size { }")),
    "a field that is there twice": Case(echo(new="max_batch_size: 4\n")),
    "a list of one value": Case(echo("max_batch_size: 8", "max_batch_size: [ 8 ]")),
    "an empty list of an unknown field": Case(echo(new="sizes []\n")),
    "two batchers": Case(echo(new="dynamic_batching {}\nsequence_batching {}\n")),
    "no copy": Case(echo("kind: KIND_CPU", "kind: KIND_CPU count: 0"), server_takes=True),
    "an unknown kind": Case(echo("KIND_CPU", "KIND_TPU")),
    "GPUs of a processor": Case(echo("kind: KIND_CPU", "kind: KIND_CPU gpus: [ 0 ]")),
    "an unknown backend": Case(echo('"python"', '"pyton"')),
    "an unknown platform": Case(echo('backend: "python"', 'platform: "onnx"')),
    "no backend": Case(
        {"echo/config.pbtxt": ECHO.replace('backend: "python"\n', ""), "echo/1/weights.bin": ""}
    ),
    "a backend and the platform of another": Case(
        {
            "net/config.pbtxt": 'backend: "tensorrt"\nplatform: "onnxruntime_onnx"\n',
            "net/1/model.plan": "a",
        }
    ),
    "no batch to make": Case(
        echo("max_batch_size: 8", "max_batch_size: 0\ndynamic_batching {}"), server_takes=True
    ),
    "batches that are no batches": Case(
        echo(new="dynamic_batching { preferred_batch_size: [ 4, 16, 0 ] }\n")
    ),
    "no default priority": Case(echo(new="dynamic_batching { priority_levels: 3 }\n")),
    "several answers": Case(
        echo(new="model_transaction_policy { decoupled: true }\n"), server_takes=True
    ),
    "a cache of several answers": Case(
        {
            **echo(
                new="model_transaction_policy { decoupled: true }\n"
                "response_cache { enable: true }\n"
            ),
            **echo(name="again"),
        },
        default_model="again",
    ),
    "a list that does not end": Case(echo("dims: [ 1 ]", "dims: [ 1")),
    "a list that ends in a comma": Case(echo("dims: [ 1 ]", "dims: [ 1, ]")),
    "a text that does not end": Case(echo('"python"', '"python')),
    "a brace too many": Case(echo(new="}\n")),
    "a brace too few": Case(echo(new="dynamic_batching {\n")),
    "no colon": Case(echo("max_batch_size: 8", "max_batch_size 8")),
    "an escape that is none": Case(echo('"TEXT"', '"TE\\kXT"')),
    "no steps": Case(
        {
            **echo(),
            "pipeline/config.pbtxt": 'platform: "ensemble"\nensemble_scheduling {}\n',
            "pipeline/1/README.md": "",
        },
        default_model="pipeline",
    ),
    "an ensemble without scheduling": Case(
        {**echo(), "pipeline/config.pbtxt": 'platform: "ensemble"\n', "pipeline/1/README.md": ""},
        default_model="pipeline",
    ),
    "scheduling without an ensemble": ensemble('platform: "ensemble"\n', 'backend: "python"\n'),
    "a step of no model": ensemble('"again"', '"agin"'),
    "a step of an unknown version": ensemble("model_version: -1", "model_version: 7"),
    "a step of itself": ensemble('"again"', '"pipeline"'),
    "a step without outputs": ensemble('      output_map { key: "ANSWER" value: "CLEAN" }\n', ""),
    "an unknown input of a model": ensemble('"TEXT" value: "RAW"', '"TXT" value: "RAW"'),
    "an unknown output of a model": ensemble('"ANSWER" value: "CLEAN"', '"ANSWERS" value: "CLEAN"'),
    "an input that is left out": Case(
        {
            **pipeline(),
            **echo(
                "} ]\noutput",
                '}, { name: "MODE" data_type: TYPE_STRING dims: [ 1 ] } ]\noutput',
                name="again",
            ),
        },
        default_model="pipeline",
    ),
    "a tensor that nothing produces": ensemble('value: "between"', 'value: "betwen"'),
    "a tensor that two produce": ensemble('value: "between"', 'value: "CLEAN"'),
    "an input that nothing takes": ensemble('value: "RAW"', 'value: "between"'),
    "an output that nothing produces": ensemble('value: "CLEAN"', 'value: "LEFT"'),
    "another data type at the other end": ensemble("TYPE_STRING", "TYPE_FP32"),
    "a larger batch than its models": ensemble("max_batch_size: 8", "max_batch_size: 16"),
    "copies of an ensemble": ensemble(
        "max_batch_size: 8", "max_batch_size: 8 instance_group [ { count: 2 } ]"
    ),
    "several answers within an ensemble": Case(
        {**pipeline(), **echo(new="model_transaction_policy { decoupled: true }\n", name="again")},
        default_model="pipeline",
        server_takes=True,
    ),
    "an environment that is there": Case(
        {
            **echo(new=environment("$$TRITON_MODEL_DIRECTORY/env.tar.gz")),
            "echo/env.tar.gz": "a",
        },
        needs="an archive of Python",
    ),
    "an environment that is not there": Case(
        echo(new=environment("$$TRITON_MODEL_DIRECTORY/env.tar.gz"))
    ),
    "an environment outside the model": Case(
        echo(new=environment("$$TRITON_MODEL_DIRECTORY/../env.tar.gz"))
    ),
    "an environment of the machine": Case(echo(new=environment("/opt/env.tar.gz"))),
    "labels that are not there": Case(
        echo('"ANSWER" data_type', '"ANSWER" label_filename: "labels.txt" data_type'),
        server_takes=True,
    ),
    "a warm-up from outside the model": Case(
        echo(
            new="""\
model_warmup {
  name: "one"
  batch_size: 1
  inputs {
    key: "TEXT"
    value { data_type: TYPE_STRING dims: [ 1 ] input_data_file: "../../text" }
  }
}
"""
        )
    ),
    "an empty model": Case({**echo(), "echo/1/model.py": ""}),
    "a pointer of Git LFS": Case(
        {**echo(), "echo/1/weights.bin": "version https://git-lfs.github.com/spec/v1\n"},
        server_takes=True,
    ),
    "several problems": Case(
        {
            **pipeline('"again"', '"agin"'),
            **echo("max_batch_size: 8", "max_batch_size: -3\nsize: 1"),
            "old/1/model.py": MODEL,
        }
    ),
}


if __name__ == "__main__":
    # Review the diff.
    REPORT.write_text(report(), "utf-8")
