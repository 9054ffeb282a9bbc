"""The sources of a release: refusals word for word, and configs that pass."""

from slipway.planning.rules import serving
from tests.support.projects import PRODUCTION
from tests.unit.planning.fleet_findings import messages
from tests.unit.planning.rule_findings import findings, only

HUB = {"source": "hub", "repository": "gpt2", "revision": "a" * 40}


class TestArtifacts:
    def test_a_release_has_one_source(self):
        rule = serving.release_has_one_source
        assert only(findings(rule, artifacts={"weights": HUB})) == (
            "artifacts.weights",
            "there are two sources of the release: `release` and `weights`",
            "Keep one of them.",
        )
        one = {"release": None, "weights": HUB}
        assert findings(rule, artifacts=one) == []
        assert findings(serving.artifact_exists, PRODUCTION, artifacts=one) == []

    def test_compiling_needs_weights(self):
        compiling = {"compile": {"instance": "ml.g4dn.xlarge"}}
        assert messages(serving.release_has_one_source, artifacts=compiling) == [
            ("artifacts.compile", "there are no weights to compile")
        ]
