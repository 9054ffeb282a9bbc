"""An existing execution role: refusals word for word, and configs that pass."""

from slipway.planning.rules.surroundings import role_is_of_the_account
from tests.unit.planning.rule_findings import findings, only


def test_a_role_belongs_to_the_account():
    assert findings(role_is_of_the_account) == []
    own = {"execution_role_arn": "arn:aws:iam::123456789012:role/ml/serving"}
    assert findings(role_is_of_the_account, endpoint=own) == []


def test_a_role_of_another_account_cannot_be_passed():
    foreign = {"execution_role_arn": "arn:aws:iam::210987654321:role/ml/serving"}
    assert only(findings(role_is_of_the_account, endpoint=foreign)) == (
        "endpoint.execution_role_arn",
        "the role belongs to account 210987654321, and `local` is in 123456789012",
        "Name a role of 123456789012 under `environments: local:`.",
    )
