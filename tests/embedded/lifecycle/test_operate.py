"""Looking after a model that is deployed: status, invoke, logs, and the AWS CLI."""

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest

from slipway.project import Project
from slipway.sizing.measured import image_name, settings_digest
from tests.support.assemblies import destroy_command
from tests.support.reduced_designs import measured, reduced_design
from tests.support.waiting import eventually
from tests.support.workbench import MODEL, SHIPPED, Workbench

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(900)]

ENDPOINT = f"{MODEL}-local"
GROUP = f"/aws/sagemaker/Endpoints/{ENDPOINT}"
REQUEST = json.dumps({"inputs": "The maximum number of", "parameters": {"max_new_tokens": 3}})


@pytest.fixture(scope="module")
def deployed(account: Workbench) -> Iterator[Workbench]:
    account.deploy_from(SHIPPED, MODEL)
    yield account
    account.destroy_from(SHIPPED, MODEL)


def test_status_in_words_and_as_json(deployed):
    lines = deployed.must("slipway", "status", MODEL).splitlines()
    assert lines[0] == "OK  in service, on what its stack declares"
    shown = "\n".join(lines)
    assert "instances  1 of 1 x ml.g4dn.xlarge (AllTraffic, scaled 1 to 4)" in shown
    assert f"\n{GROUP} AllTraffic/i-" in shown
    assert " INFO model_loaded milliseconds=" in shown

    found = json.loads(deployed.must("slipway", "status", MODEL, "--json", "--lines", "1"))
    assert (found["troubles"], found["notes"], found["in_progress"]) == ([], [], False)
    assert found["endpoint"]["status"] == "InService"
    assert found["endpoint"]["served"] == found["declared"]
    lock = json.loads((deployed.project / f"model_configs/{MODEL}.lock.json").read_text("utf-8"))
    assert found["declared"]["artifact"] == lock["sample"]["compiled"]["digest"]
    assert found["planned"]["artifact"] == found["declared"]["artifact"]
    assert len(found["log_lines"]) == 1


def test_invoke_inline_from_a_file_and_from_standard_input(deployed):
    said = deployed.must("slipway", "invoke", MODEL, REQUEST)
    assert "generated_text" in said
    assert "AllTraffic answered in " in said

    (deployed.project / "request.json").write_text(REQUEST, "utf-8")
    answer = json.loads(
        deployed.must("slipway", "invoke", MODEL, "--file", "request.json", "--json")
    )
    assert answer["variant"] == "AllTraffic"
    assert 0 < answer["latency_milliseconds"] < 60_000
    piped = subprocess.run(
        ["slipway", "invoke", MODEL, "--file", "-"],
        cwd=deployed.project, env=deployed.environment, input=REQUEST.encode(),
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    # Standard output is the answer and nothing else.
    assert json.loads(piped.stdout) == answer["answer"]
    assert piped.stderr.startswith(b"AllTraffic answered in ")


def test_the_containers_log_is_in_the_stacks_group(deployed):
    # What `aws logs tail` of AWS CLI 2 calls; PyPI has AWS CLI 1.
    found = deployed.aws("logs", "filter-log-events", "--log-group-name", GROUP, "--interleaved")
    events = [json.loads(event["message"])["event"] for event in found["events"]]
    assert events[:1] == ["listening"]
    assert "model_loaded" in events


def test_the_aws_cli_sees_what_the_stack_declared(deployed, tmp_path):
    endpoint = deployed.aws("sagemaker", "describe-endpoint", "--endpoint-name", ENDPOINT)
    assert endpoint["EndpointStatus"] == "InService"
    command = ("sagemaker", "describe-endpoint-config", "--endpoint-config-name")
    config = deployed.aws(*command, endpoint["EndpointConfigName"])
    (variant,) = config["ProductionVariants"]
    assert variant["InstanceType"] == "ml.g4dn.xlarge"

    command = ("application-autoscaling", "describe-scalable-targets")
    (target,) = deployed.aws(*command, "--service-namespace", "sagemaker")["ScalableTargets"]
    assert target["ResourceId"] == f"endpoint/{ENDPOINT}/variant/AllTraffic"
    assert (target["MinCapacity"], target["MaxCapacity"]) == (1, 4)
    alarms = deployed.aws("cloudwatch", "describe-alarms")["MetricAlarms"]
    rate = next(a for a in alarms if a.get("Metrics"))
    (returned,) = [query for query in rate["Metrics"] if query["ReturnData"]]
    assert returned["Expression"] == "100 * MAX([server_errors, failures]) / invocations"

    answer = tmp_path / "answer.json"
    deployed.must(
        *("aws", "sagemaker-runtime", "invoke-endpoint", "--endpoint-name", ENDPOINT),
        *("--content-type", "application/json", "--body", REQUEST, str(answer)),
    )
    assert json.loads(answer.read_text("utf-8"))[0]["generated_text"]


def test_a_protected_stack_is_not_destroyed(deployed):
    protected = deployed.project / "cdk.out.protected"
    shutil.copytree(deployed.project / SHIPPED, protected)
    manifest = json.loads((protected / "manifest.json").read_text("utf-8"))
    manifest["artifacts"][MODEL]["properties"]["terminationProtection"] = True
    (protected / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    file = deployed.config(MODEL)
    text = file.read_text("utf-8")
    on = text.replace("\nendpoint:\n", "\nendpoint:\n  termination_protection: true\n")
    file.write_text(on, "utf-8")
    try:
        change = deployed.must("cdk", "diff", MODEL, "-c", f"models={MODEL}", "--no-color")
    finally:
        file.write_text(text, "utf-8")
    assert "[+] Output TerminationProtection TerminationProtection:" in change
    assert "Resources" not in change
    config = deployed.client("sagemaker").describe_endpoint(EndpointName=ENDPOINT)
    deployed.deploy_from(protected.name, MODEL)
    report = deployed.fails(*destroy_command(protected.name, MODEL))
    assert f"Stack [{ENDPOINT}] cannot be deleted while TerminationProtection is enabled" in report
    lines = deployed.must("slipway", "status", MODEL).splitlines()
    assert lines[0] == "OK  in service, on what its stack declares"
    assert lines[1] == "NOTE  1 setting of the files is not deployed; `cdk diff` shows the change"
    assert any(line.endswith("UTC, protected against deletion") for line in lines)
    differing = "endpoint.termination_protection: false in the files, true deployed (in place)"
    assert any(line.endswith(differing) for line in lines)
    told = deployed.must("slipway", "plan", MODEL, "--against", "deployed").splitlines()
    assert told[-2:] == [
        "deploy    in place: the fleet stays",
        "in place  endpoint.termination_protection: true -> false (the fleet stays)",
    ]
    told = deployed.must("slipway", "review", MODEL, "--live", "--env", "local").splitlines()
    assert told[:3] == [
        f"{MODEL} in `local`",
        "  verdict   in place: the fleet stays",
        "  in place  endpoint.termination_protection: true -> false (the fleet stays)",
    ]
    # The way out, which leaves the endpoint alone as well.
    deployed.deploy_from(SHIPPED, MODEL)
    assert "protected" not in deployed.must("slipway", "status", MODEL)
    after = deployed.client("sagemaker").describe_endpoint(EndpointName=ENDPOINT)
    assert after["LastModifiedTime"] == config["LastModifiedTime"]


@pytest.mark.parametrize(
    "design", ["gpt2-autocomplete", "flan-t5-xxl", "gpt-j-6b", "text-generation"]
)
def test_a_shipped_design_measures_it(deployed, design):
    # The images of LMI need a GPU for the other models, and this one takes the same requests.
    found = measured(deployed, MODEL, design)
    project = Project(deployed.project)
    plan = project.plan(MODEL, project.environment("local"))
    assert [found["served"][each] for each in ("image", "artifact", "settings")] == [
        image_name(plan.image.uri),
        plan.artifact.digest,
        settings_digest(plan.container_environment),
    ]
    if design == "gpt2-autocomplete":
        report = deployed.fails("slipway", "bench", "--keep", design)
        assert "the run is not kept: the embedded AWS" in report
    for cell in found["cells"]:
        if cell["trials"] and design != "flan-t5-xxl":
            assert cell["figures"]["tokens_per_second"]["value"] > 0
        if cell["trials"] and design == "text-generation":
            first = cell["figures"]["first_token_p50_milliseconds"]["value"]
            assert 0 < first < cell["figures"]["maximum_milliseconds"]["value"]


def test_ctrl_c_ends_a_bench_with_a_partial_report(deployed):
    path = reduced_design("gpt2-autocomplete", deployed.project)
    content = json.loads(path.read_text("utf-8")) | {"trials": 1000, "trace": "trace.csv"}
    # The requests of a trace need no self-test, which a busy machine may not pass.
    del content["factors"]["concurrency"], content["seconds"]
    path.write_text(json.dumps(content), "utf-8")
    (deployed.project / "trace.csv").write_text("0\n0.1\n", "utf-8")
    folder = deployed.project / "stopped"
    command = ("slipway", "bench", MODEL, "--design", path.name, "--output", "stopped")
    with deployed.popen(*command) as process:
        rows = folder / "rows.jsonl"
        eventually(lambda: rows.is_file() and rows.stat().st_size > 0)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 1
    assert "PARTIAL: it was stopped by Ctrl-C." in (folder / "report.md").read_text("utf-8")
    assert json.loads((folder / "summary.json").read_text("utf-8"))["measured"]


def test_a_bench_on_a_full_disk_prints_what_it_measured(deployed):
    path = reduced_design("gpt2-autocomplete", deployed.project)
    folder = deployed.project / "full"
    folder.mkdir()
    (folder / "rows.jsonl").symlink_to("/dev/full")
    ended = deployed.run("slipway", "bench", MODEL, "--design", path.name, "--output", "full")
    assert ended.returncode == 1
    assert "cannot be written: No space left on device" in ended.stdout
    assert "PARTIAL" in ended.stdout


def test_a_bench_without_an_endpoint_says_so(deployed):
    said = deployed.fails("slipway", "bench", "bert-qa-latency")
    assert "Endpoint bert-qa-latency-local of account 123456789012 not found" in said
