"""IAM's API: moto's, and SimulatePrincipalPolicy of roles.

The policies of a role are evaluated as SageMaker's calls in the role's name are, so a simulation
and an endpoint never disagree here.
"""

from typing import Any

from moto.core.responses import ActionResult
from moto.iam.responses import IamResponse

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.iam.permissions import decision

_INVALID = "InvalidInput"
_APPLIED = {"ActionNames", "ContextEntries", "PolicySourceArn", "ResourceArns"}
_PAGING = {"Marker", "MaxItems"}


class IamApi(IamResponse):  # type: ignore[misc]  # moto ships no type information
    """One request; the methods are the operations' names in moto's spelling."""

    def simulate_principal_policy(self) -> Any:
        """Evaluates the policies and the boundary of a role."""
        parameters = {name: value for name, value in self._get_params().items() if value}
        arn: str = parameters["PolicySourceArn"]
        refused = sorted(set(parameters) - _APPLIED - _PAGING)
        if refused:
            raise ApiError(
                _INVALID,
                f"The embedded AWS does not emulate {', '.join(refused)} of "
                "SimulatePrincipalPolicy.",
            )
        if ":role/" not in arn:
            raise ApiError(_INVALID, "The embedded AWS simulates the policies of roles only.")
        self.backend.get_role(arn.rpartition("/")[2])  # raises for a role that does not exist
        context = {
            entry["ContextKeyName"].lower(): entry["ContextKeyValues"]
            for entry in parameters.get("ContextEntries", [])
        }
        results = [
            {
                "EvalActionName": action,
                "EvalResourceName": resource,
                "EvalDecision": decision(arn, action, resource, context),
                "MatchedStatements": [],
                "MissingContextValues": [],
            }
            for action in parameters["ActionNames"]
            for resource in parameters.get("ResourceArns", ["*"])
        ]
        return ActionResult({"EvaluationResults": results, "IsTruncated": False})
