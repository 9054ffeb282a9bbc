"""An existing execution role: refusals word for word, and configs that pass."""

from slipway.planning.rules.surroundings import role_is_of_the_account
from tests.unit.planning.rule_findings import findings, only


def test_role_is_of_the_account():
    assert findings(role_is_of_the_account) == []
    own = {"execution_role_arn": "arn:aws:iam::123456789012:role/ml/serving"}
    assert findings(role_is_of_the_account, endpoint=own) == []
    foreign = {"execution_role_arn": "arn:aws:iam::210987654321:role/ml/serving"}
    assert only(findings(role_is_of_the_account, endpoint=foreign)) == (
        "endpoint.execution_role_arn",
        "the role belongs to account 210987654321, and `local` is in 123456789012",
        "Name a role of 123456789012 under `environments: local:`.",
    )
