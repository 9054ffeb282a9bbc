"""The commands as a shell sees them: output, report, exit code."""

import json

import pytest
import typer

from slipway import __version__
from slipway.cli import main as cli
from slipway.cli.output import human_size
from slipway.codes.code import Code
from slipway.codes.table import entries
from slipway.errors import UserError
from tests.support.projects import DIGEST, config_text, write_project


@pytest.fixture
def root(tmp_path, monkeypatch):
    models = {"tiny": config_text("tiny"), "fresh": config_text("fresh")}
    root = write_project(tmp_path, models, published=["tiny"])
    monkeypatch.chdir(root)
    monkeypatch.delenv("SLIPWAY_ENV", raising=False)
    return root


@pytest.fixture
def run(slipway_command):
    return slipway_command


def add(root, file: str, text: str) -> None:
    with (root / file).open("a", encoding="utf-8") as lines:
        lines.write(text)


def add_released(root) -> None:
    """A model without a sample."""
    text = config_text("released", ("  sample:\n    path: samples/tiny\n", ""))
    (root / "model_configs" / "released.yaml").write_text(text, encoding="utf-8")


def spoil(root, name: str = "fresh") -> None:
    path = root / "model_configs" / f"{name}.yaml"
    path.write_text(path.read_text().replace("instance_count: 2", "instance_count: 0"))


def test_a_new_project_has_a_version_and_nothing_to_validate(run, tmp_path, monkeypatch):
    assert run("--version") == (0, f"{__version__}\n", "")
    monkeypatch.chdir(write_project(tmp_path, {}))
    assert run("validate") == (0, "0 model configs valid.\n", "")


def test_valid_configs_are_counted_whether_published_or_not(run, root):
    assert run("validate") == (
        0, "2 model configs valid: 2 for `local`, 2 for `production`.\n", "",
    )  # fmt: skip
    assert run("validate", "--env", "local")[1] == "2 model configs valid for `local`.\n"
    assert run("validate", "ti*", "--env", "production") == (
        0, "1 model config valid for `production`.\n", "",
    )  # fmt: skip
    assert run.document("validate") == {
        "valid": ["fresh", "tiny"],
        "environments": {name: ["local", "production"] for name in ("fresh", "tiny")},
        "problems": [],
        "warnings": {"fresh": [], "tiny": []},
    }  # fmt: skip


def test_what_an_environment_has_nothing_of_is_said(run, root):
    add_released(root)
    assert run("validate")[1] == ("3 model configs valid: 2 for `local`, 3 for `production`.\n")
    assert run("validate", "--env", "local") == (
        0,
        "3 model configs valid for `local`. There is no sample to deploy there of released.\n",
        "",
    )
    assert run.document("validate", "released", "--env", "local")["warnings"] == {
        "released": [
            {
                "code": "no-source",
                "message": "There is no sample to publish, which `local` deploys: SageMaker would "
                "refuse this.",
            }
        ]
    }
    assert run("validate", "released", "--env", "production")[1].endswith("`production`.\n")


def test_problems_of_all_files_are_one_report_on_standard_error(run, root):
    spoil(root, "fresh")
    spoil(root, "tiny")
    errors = run.refused("validate")
    assert errors.startswith(
        "2 problems\n- model_configs/fresh.yaml:24:3: endpoint.instance_count: 0 is out of range"
    )
    assert "- model_configs/tiny.yaml:24:3: endpoint.instance_count: 0 is out of range" in errors


def test_as_json_problems_are_data_on_standard_output(run, root):
    spoil(root)
    code, output, errors = run("validate", "--json")
    assert (code, errors) == (1, "")
    assert json.loads(output) == {
        "problems": [
            {
                "code": "SW203",
                "kind": "value",
                "file": "model_configs/fresh.yaml",
                "line": 24,
                "column": 3,
                "field": "endpoint.instance_count",
                "message": "0 is out of range: at least 1",
                "remedy": "Use a value that is at least 1. Example: `instance_count: 2`.",
            }
        ]
    }


def test_a_plan_is_shown_as_text_or_as_json(run, root):
    lines = run.done("plan", "tiny").splitlines()
    assert lines[0].split() == ["endpoint", "tiny-local", "in", "123456789012/us-east-1"]
    assert any(f"/artifacts/{DIGEST}/files/ (4.6 MB, 6 files, for cpu)" in line for line in lines)
    plan = run.document("plan", "tiny", "--env", "production")
    assert plan["endpoint_name"] == "tiny-production"
    assert plan["artifact"]["target"] == "sm75"
    assert plan["image"]["uri"].startswith("210987654321.dkr.ecr.eu-west-1.amazonaws.com/slipway/")


def test_an_unpublished_plan_has_to_be_allowed(run, root):
    errors = run.refused("plan", "fresh")
    assert "the sample was never published [SW404]\n    Run `slipway publish fresh" in errors
    output = run.done("plan", "fresh", "--allow-unpublished")
    assert "The artifact is not published: SageMaker would refuse this." in output


@pytest.mark.parametrize(
    ("arguments", "report"),
    [
        (["plan", "tinny"], "no model config matches 'tinny' [SW402]\n    Did you mean `tiny`?"),
        (["plan", "tiny", "--env", "prod"], "there is no environment 'prod'"),
        (["publish", "tiny"], "the embedded AWS is not running [SW504]\n    Start it with "),
        (["preflight", "tiny"], "the embedded AWS is not running [SW504]\n    Start it with "),
        (["leftovers", "tiny"], "the embedded AWS is not running [SW504]\n    Start it with "),
        (["local", "env"], "the embedded AWS is not running [SW504]\n    Start it with "),
        (["local", "pass-minutes", "3"], "[SW504]\n    Start it with `slipway local start`."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_the_user_can_put_right_ends_with_1(run, root, arguments, report):
    errors = run.refused(*arguments)
    assert errors.startswith("1 problem\n- ")
    assert report in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan"], "Missing argument"),
        (["publish"], "takes either the name of a model or `--all`"),
        (["publish", "tiny", "--all"], "takes either the name of a model or `--all`"),
        (["plan", "tiny", "--jsn"], "No such option: --jsn"),
        (["depoy", "tiny"], "No such command 'depoy'"),
        (["local", "start", "--port", "x"], "Invalid value for '--port'"),
        *(
            (["local", "pass-minutes", minutes], "Invalid value for 'minutes'")
            for minutes in ("0", "1.5", "soon")
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_misspelt_command_line_ends_with_1_and_no_traceback(run, root, arguments, message):
    errors = run.refused(*arguments)
    assert message in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        ("--env production --from-profile mine",
         "`--from-profile` needs `--from` with an environment that has an account",
         "--env production --from staging --from-profile PROFILE`."),
        ("--env production --from-profile mine --from local",
         "`--from-profile` has no effect on `local`, which is the embedded AWS",
         "--env production --from staging --from-profile PROFILE`."),
        ("--remote --verify", "`--remote` and `--verify` exclude each other",
         "--verify` once the build is over."),
    ],
)  # fmt: skip
def test_options_of_publish_that_exclude_each_other(run, root, options, message, remedy):
    errors = run.refused("publish", "tiny", *options.split())
    assert errors == f"1 problem\n- {message} [SW409]\n    Write `slipway publish NAME {remedy}\n"


@pytest.fixture
def app(monkeypatch) -> typer.Typer:
    """An app in the place of ours, for commands that end in their own way."""
    stand_in = typer.Typer(pretty_exceptions_enable=False)
    stand_in.callback()(lambda: None)
    monkeypatch.setattr(cli, "app", stand_in)
    return stand_in


def test_our_bug_ends_with_2_and_a_traceback(run, app):
    @app.command()
    def broken() -> None:
        raise KeyError("surprise")

    code, output, errors = run("broken")
    assert (code, output) == (2, "")
    assert errors.startswith("Traceback (most recent call last):")
    assert "KeyError: 'surprise'\nThis is a bug in Slipway. Please report it, with the " in errors
    assert "in the issue tracker of the repository" in errors


def test_a_command_chooses_its_exit_code(run, app):
    @app.command()
    def found() -> None:
        raise typer.Exit(1)

    @app.command()
    def wrong() -> None:
        raise UserError.of(Code.NO_FILES, "a", "b")

    @app.command()
    def stopped() -> None:
        raise KeyboardInterrupt

    assert run("found") == (1, "", "")
    assert run("wrong") == (1, "", "1 problem\n- a [SW601]\n    b\n")
    assert run("stopped")[:2] == (130, "")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (4_606_433, "4.6 MB"), (3e9, "3.0 GB"), (2e12, "2.0 TB")],
)
def test_sizes_are_written_in_decimal_units(size, text):
    assert human_size(size) == text


def test_the_editor_schema_is_written_and_checked(run, root):
    path = root / "model_configs" / "schema.json"
    errors = run.refused("schema", "--check")
    assert not path.exists()
    assert "model_configs/schema.json is stale [SW407]\n    Run `slipway schema`" in errors
    assert run("schema") == (0, "model_configs/schema.json written.\n", "")
    assert run("schema") == (0, "model_configs/schema.json is up to date.\n", "")
    run.done("schema", "--check")


def test_problems_go_to_code_review_as_sarif(run, root):
    run.done("validate", "--sarif", "report.sarif")
    log = json.loads((root / "report.sarif").read_text("utf-8"))
    assert log["runs"][0]["results"] == []
    spoil(root)
    assert run("validate", "--sarif", "report.sarif")[0] == 1
    log = json.loads((root / "report.sarif").read_text("utf-8"))
    (result,) = log["runs"][0]["results"]
    assert log["version"] == "2.1.0"
    (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
    assert (result["ruleId"], rule["id"]) == ("SW203", "SW203")
    assert rule["shortDescription"] == {"text": "The number is out of range"}
    entry = entries()[Code.OUT_OF_RANGE]
    assert rule["fullDescription"] == {"text": entry.cause}
    assert rule["help"] == {"text": entry.remedy, "markdown": entry.remedy}
    assert result["level"] == "error"
    assert result["message"]["text"].startswith("endpoint.instance_count: 0 is out of range")
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "model_configs/fresh.yaml"
    line = place["physicalLocation"]["region"]["startLine"]
    text = (root / "model_configs" / "fresh.yaml").read_text("utf-8").splitlines()
    assert text[line - 1] == "  instance_count: 0"


def test_an_output_file_that_cannot_be_written_is_named_beside_the_problems(run, root):
    code, _, errors = run("validate", "--sarif", "nowhere/report.sarif")
    assert (code, errors) == (
        1,
        "1 problem\n- nowhere/report.sarif cannot be written: No such file or directory [SW426]\n"
        "    Make the folder first, `mkdir -p nowhere`, or name another file.\n",
    )
    spoil(root)
    errors = run.refused("validate", "--sarif", str(root))
    assert errors.startswith("2 problems\n- model_configs/fresh.yaml:")
    assert f"- {root} cannot be written: Is a directory [SW426]\n    Name another file" in errors


def test_what_the_embedded_aws_cannot_say_or_start(run, root):
    code, output, errors = run("local", "status")
    assert (code, errors) == (3, "")
    assert output == "The embedded AWS is not running. Start it with `slipway local start`.\n"
    assert run("local", "status", "--json")[0] == 3
    errors = run.refused(
        "local", "start", "--without-capacity", "ml.g5.xlarg", "--without-capacity", "ml.g5.xlarge"
    )
    assert "not a known hosting instance type: ml.g5.xlarg [" in errors
    assert "Did you mean `ml.g5.xlarge`?" in errors


def test_a_missing_sample_or_weights_path_is_a_problem(run, root):
    path = root / "model_configs" / "tiny.yaml"
    text = path.read_text("utf-8").replace("path: samples/tiny", "path: samples/nowhere")
    path.write_text(text, "utf-8")
    errors = run.refused("validate", "tiny")
    assert errors.endswith(
        "artifacts.sample.path: there is no samples/nowhere in the project [SW428]\n"
        "    Correct the path, or copy the files there.\n"
    )
    assert errors.startswith("1 problem\n")
    path.write_text(text.replace("samples/nowhere", "build/nowhere"), "utf-8")
    run.done("validate", "tiny")


def test_a_link_that_leads_out_of_the_project_is_a_problem(run, root, monkeypatch):
    outside = root.with_name("outside")
    (root / "samples" / "tiny").rename(outside)
    (root / "samples" / "tiny").symlink_to(outside)
    errors = run.refused("validate", "tiny")
    assert errors.endswith(
        f"artifacts.sample.path: samples/tiny leads out of the project, to {outside} [SW209]\n"
        "    Copy the files into the project. If everything there may be published, set "
        f"SLIPWAY_ALLOW_OUTSIDE={outside}.\n"
    )
    monkeypatch.setenv("SLIPWAY_ALLOW_OUTSIDE", str(outside))
    run.done("validate", "tiny")


def test_a_plan_without_an_environment_is_of_the_one_that_deploys(run, root):
    add_released(root)
    code, output, errors = run("plan", "released", "--allow-unpublished")
    assert code == 0
    assert output.split()[1] == "released-production"
    assert errors == "Planned for `production`, the only environment that deploys released.\n"
    # Nobody deploys to the environment that CI synthesises for.
    add(root, "environments.yaml", '\nci:\n  account: "111122223333"\n  region: us-east-1\n')
    code, output, _ = run("plan", "released", "--allow-unpublished")
    assert (code, output.split()[1]) == (0, "released-production")
    add(root, "environments.yaml", '\nlive:\n  account: "222233334444"\n  region: us-east-1\n')
    assert run("plan", "released", "--allow-unpublished") == (
        1,
        "",
        "1 problem\n- `local` deploys no sample of released, and several environments do [SW429]\n"
        "    Add `--env NAME` with one of them: production, live.\n",
    )


def test_every_environment_that_deploys_a_config_is_checked(run, root):
    section = "\nenvironments:\n  production:\n    endpoint:\n      volume_size_gb: 30\n"
    add(root, "model_configs/tiny.yaml", section)
    errors = run.refused("validate")
    assert errors.startswith("1 problem\n- model_configs/tiny.yaml:")
    assert "endpoint.volume_size_gb: ml.g4dn.xlarge stores on its local NVMe disk" in errors
    path = root / "environments.yaml"
    path.write_text(path.read_text("utf-8").replace("210987654321", "21"), "utf-8")
    assert 'production.account: "21" does not have the form' in run.refused("validate", "tiny")
    run.done("validate", "tiny", "--env", "local")
