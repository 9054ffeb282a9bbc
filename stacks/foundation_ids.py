"""Generated ids of the foundation that other stacks read.

The foundation stores them as SSM parameters, behind the environment's prefix. Other stacks read
them as SSM-typed parameters: there are no exports that would tie stacks together, and no look-ups
at synth.
"""

import aws_cdk as cdk
from constructs import Construct

# The place of artifacts has two of them, because publishing reads these as well.
from slipway.planning.artifact_place import ARTIFACT_KEY_ARN as ARTIFACT_KEY_ARN
from slipway.planning.artifact_place import COMPILE_ROLE_ARN as COMPILE_ROLE_ARN
from slipway.planning.vpc import SECURITY_GROUP_ID as SECURITY_GROUP_ID

# Names of the parameters behind the prefix.
NOTIFICATION_TOPIC_ARN = "notification-topic-arn"


def construct_id_of(name: str) -> str:
    """Returns the construct id of an id's parameter, in the foundation and in other stacks."""
    return "".join(word.capitalize() for word in name.split("-"))


def read_id(scope: Construct, parameter_prefix: str, name: str) -> str:
    """Adds the parameter that reads an id, and returns its value, a token."""
    parameter = cdk.CfnParameter(
        scope,
        construct_id_of(name),
        type="AWS::SSM::Parameter::Value<String>",
        default=f"{parameter_prefix}{name}",
        description="Written by the foundation: cdk deploy foundation",
    )
    return parameter.value_as_string
