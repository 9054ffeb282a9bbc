"""Access to an account: the right one, and nothing of the user's where variables are given."""

import json
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer

from slipway.access import Access, account_errors, open_access, open_shell_access, open_source
from slipway.config.environments import Environment
from slipway.embedded_aws.lock import held_lock
from slipway.errors import UserError
from slipway.local_hint import unset_variables_hint
from tests.support.projects import LOCAL, refusal


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def shell(url, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "shell")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "shell")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    return monkeypatch


def environment(account: str) -> Environment:
    return Environment(name="production", account=account, region="eu-west-1")


def test_the_right_account_opens_and_another_one_is_refused(shell, tmp_path):
    access = open_access(environment("123456789012"), tmp_path)
    assert access.client("s3").meta.region_name == "eu-west-1"
    assert access.credentials().access_key == "shell"
    assert str(refusal(open_access, environment("210987654321"), tmp_path)) == (
        "1 problem\n- the credentials are of account 123456789012; environment `production` is "
        "account 210987654321 [SW502]\n"
        "    Log in to that account, or choose another environment with `--env`."
    )


def test_without_credentials_one_is_asked_to_log_in(shell, tmp_path):
    shell.delenv("AWS_ACCESS_KEY_ID")
    shell.delenv("AWS_SECRET_ACCESS_KEY")
    shell.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for place, error in (
        ("account 123456789012", refusal(open_access, environment("123456789012"), tmp_path)),
        ("the account of the endpoint", refusal(open_shell_access, "eu-west-1")),
    ):
        (problem,) = error.problems
        assert "no usable AWS credentials" in problem.message
        assert problem.remedy == f"Log in to {place}, for example with `aws sso login`."


def test_local_is_the_embedded_aws_whatever_the_shell_has(shell, tmp_path):
    assert str(refusal(open_access, LOCAL, tmp_path)) == (
        "1 problem\n- the embedded AWS is not running [SW504]\n"
        "    Start it with `slipway local start`."
    )


def test_given_variables_count_alone(shell, url):
    shell.setenv("AWS_PROFILE", "mine")
    shell.setenv("AWS_SESSION_TOKEN", "token")
    given = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "given")
    taken_away = dict.fromkeys(("AWS_PROFILE", "AWS_SESSION_TOKEN"))
    access = Access("us-east-1", {"AWS_ENDPOINT_URL": url, **given, **taken_away})
    assert access.client("sts").get_caller_identity()["Account"] == "123456789012"
    assert access.credentials().access_key == "given"
    child = access.process_environment()
    assert child["AWS_REGION"] == "us-east-1"
    assert child.keys().isdisjoint({**given, **taken_away})


@pytest.mark.parametrize(
    ("variables", "message", "remedy"),
    [
        (
            {"AWS_PROFILE": "nope"},
            "The config profile (nope) could not be found",
            "Set AWS_PROFILE to a profile of ~/.aws/config, or unset it. Known: search.",
        ),
        (
            {"AWS_ENDPOINT_URL": "nonsense"},
            "Invalid endpoint: nonsense",
            "AWS_ENDPOINT_URL is 'nonsense': write a URL such as https://HOST, or unset it.",
        ),
        (
            {"AWS_ENDPOINT_URL": "http://local:host:1"},
            "Port could not be cast to integer value as 'host:1'",
            "AWS_ENDPOINT_URL is 'http://local:host:1': write a URL such as https://HOST, or unset "
            "it.",
        ),
        (
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"},
            'Could not connect to the endpoint URL: "http://127.0.0.1:1/"',
            "AWS_ENDPOINT_URL is 'http://127.0.0.1:1': unset it to reach AWS, or start the program "
            "that answers there.",
        ),
        (
            {"AWS_RETRY_MODE": "never"},
            "Invalid value provided to \"mode\": \"never\" must be one of: ('legacy', 'standard', "
            "'adaptive')",
            "Correct AWS_RETRY_MODE and AWS_MAX_ATTEMPTS.",
        ),
        (
            {"AWS_MAX_ATTEMPTS": "many", "AWS_ENDPOINT_URL": ""},
            "invalid literal for int() with base 10: 'many'",
            "Correct the `AWS_` variables of the shell and ~/.aws/config.",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_a_wrong_setting_of_the_shell_is_named(shell, tmp_path, variables, message, remedy):
    (tmp_path / "config").write_text("[profile search]\nregion = eu-west-1\n")
    for name, value in variables.items():
        shell.setenv(name, value)
    assert str(refusal(open_access, environment("123456789012"), tmp_path)) == (
        f"1 problem\n- the shell's settings for AWS cannot be used: {message} [SW425]\n    {remedy}"
    )


def test_a_config_file_that_cannot_be_read_and_a_denied_call_are_named(shell, tmp_path):
    (tmp_path / "config").write_text("[default\nx")
    assert str(refusal(open_access, environment("123456789012"), tmp_path)) == (
        "1 problem\n- the shell's settings for AWS cannot be used: Unable to parse config file: "
        f"{tmp_path / 'config'} [SW425]\n"
        "    Correct the file: sections such as `[profile NAME]`, and `KEY = VALUE` lines."
    )
    denied = {"Error": {"Code": "AccessDenied", "Message": "no"}}
    with (
        pytest.raises(UserError, match=r"could not be examined: .* no \[SW503\]"),
        account_errors(),
    ):
        raise ClientError(denied, "ListBuckets")


@pytest.fixture
def profile(shell, tmp_path):
    """A shell with credentials of its own and a profile `staging`."""
    (tmp_path / "config").write_text("[profile staging]\nregion = eu-west-1\n")
    (tmp_path / "credentials").write_text(
        "[staging]\naws_access_key_id = profile\naws_secret_access_key = profile\n"
    )
    return shell


def test_a_profile_counts_more_than_the_shells_credentials(profile, tmp_path):
    access = open_access(environment("123456789012"), tmp_path, "staging")
    assert access.credentials().access_key == "profile"
    assert access.in_region("us-east-1").credentials().access_key == "profile"
    assert access.in_region("us-east-1").client("s3").meta.region_name == "us-east-1"


@pytest.mark.parametrize(
    ("account", "name", "message", "remedy"),
    [
        (
            "210987654321",
            "staging",
            "the credentials of profile `staging` are of account 123456789012; environment "
            "`production` is account 210987654321",
            "Name a profile of that account.",
        ),
        (
            "123456789012",
            "missing",
            "the shell's settings for AWS cannot be used: The config profile (missing) could not "
            "be found",
            "Name a profile of ~/.aws/config. Known: staging.",
        ),
    ],
)
def test_an_unusable_profile_is_named(profile, tmp_path, account, name, message, remedy):
    (problem,) = refusal(open_access, environment(account), tmp_path, name).problems
    assert (problem.message, problem.remedy) == (message, remedy)


def test_the_source_is_read_by_the_target_or_by_its_profile(profile, tmp_path):
    target, source = environment("123456789012"), environment("123456789012")
    source = source.model_copy(update={"name": "staging", "region": "us-west-2"})
    access = open_access(target, tmp_path)
    shared, is_shared = open_source(source, target, access, tmp_path, None)
    assert (shared.credentials().access_key, is_shared) == ("shell", True)
    assert shared.client("s3").meta.region_name == "us-west-2"
    own, is_shared = open_source(source, target, access, tmp_path, "staging")
    assert (own.credentials().access_key, is_shared) == ("profile", False)
    # The embedded AWS and an account never share credentials.
    real, is_shared = open_source(source, LOCAL, access, tmp_path, None)
    assert (real.credentials().access_key, is_shared) == ("shell", False)
    with pytest.raises(UserError, match="the embedded AWS is not running"):
        open_source(LOCAL, target, access, tmp_path, None)


def test_an_import_reads_with_whatever_the_shell_has(shell, url):
    shell.setenv("AWS_ENDPOINT_URL", url)
    shell.delenv("AWS_REGION", raising=False)
    shell.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert open_shell_access(None)[1] == "eu-west-1"
    shell.setenv("AWS_REGION", "eu-central-1")
    assert open_shell_access(None)[1] == "eu-central-1"
    access, region = open_shell_access("us-east-1")
    assert region == "us-east-1"
    assert access.client("sts").meta.region_name == "us-east-1"


@pytest.mark.parametrize(
    ("region", "message"),
    [(None, "no region tells where the endpoint is"), ("mars", "'mars' is no region")],
)
def test_an_import_needs_a_region(shell, region, message):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        shell.delenv(name, raising=False)
    shell.setenv("AWS_CONFIG_FILE", "/dev/null")
    assert str(refusal(open_shell_access, region)) == (
        f"1 problem\n- {message} [SW662]\n"
        "    Add `--region REGION`, such as `--region eu-west-1`, or set AWS_REGION."
    )


def test_an_import_with_an_unknown_profile_names_the_setting(shell):
    shell.delenv("AWS_REGION", raising=False)
    shell.setenv("AWS_PROFILE", "nobody")
    for region in (None, "eu-west-1"):
        with pytest.raises(UserError, match="the shell's settings for AWS cannot be used"):
            open_shell_access(region)


URL = "http://localhost:4599"
HINT = (
    f"The embedded AWS runs at {URL}, and this shell does not point at it, so `cdk deploy` cannot "
    'reach it. Run: eval "$(slipway local env)"'
)


def test_the_hint_is_given_while_it_runs_and_the_shell_points_elsewhere(tmp_path):
    directory = tmp_path / ".slipway" / "local"
    directory.mkdir(parents=True)
    state = {"pid": 1, "port": 4599, "url": URL, "started_at": "2026-11-24T00:00:00+00:00"}
    state |= {"secret_access_key": "new", "engine": None, "refused": []}
    state |= {"without_capacity": [], "recorded": []}
    (directory / "state.json").write_text(json.dumps(state))
    assert unset_variables_hint(tmp_path, "local", {}) is None
    with held_lock(directory):
        assert unset_variables_hint(tmp_path, "local", {}) == HINT
        elsewhere = {"AWS_ENDPOINT_URL": "http://localhost:4566"}
        assert unset_variables_hint(tmp_path, "local", elsewhere) == HINT
        assert unset_variables_hint(tmp_path, "local", {"AWS_ENDPOINT_URL": f"{URL}/"}) is None
        at_it = {"AWS_ENDPOINT_URL": URL, "AWS_ACCESS_KEY_ID": "embedded-aws"}
        stale, fresh = ({**at_it, "AWS_SECRET_ACCESS_KEY": secret} for secret in ("old", "new"))
        assert unset_variables_hint(tmp_path, "local", stale) == HINT
        assert unset_variables_hint(tmp_path, "local", fresh) is None
        assert unset_variables_hint(tmp_path, "production", {}) is None
