"""The CDK CLI's user is told that the shell does not point at the running embedded AWS."""

import json

from slipway.embedded_aws.lock import held_lock
from slipway.local_hint import unset_variables_hint

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
