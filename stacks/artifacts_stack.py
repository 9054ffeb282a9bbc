"""The key of an isolated model's artifacts, and the role that compiles them.

They have a stack of their own, because `slipway publish` encrypts with the key before the
endpoint's stack can exist. Like the foundation's key, this key outlives its stack, because
published artifacts are unreadable without it. A later stack makes another key, unless the model's
config names the first.
"""

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.planning.artifact_place import ArtifactPlace, artifact_place
from slipway.stacks.constructs.compile_role import CompileRole
from slipway.stacks.constructs.statements import limit_roles


class ArtifactsStack(cdk.Stack):
    """One per isolated model, deployed after the foundation and before anything is published."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: ModelConfig,
        environment: Environment,
        env: cdk.Environment,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=environment.stack_name(construct_id),
            description=f"Slipway: the key of {config.name}'s artifacts in {environment.name}",
            env=env,
        )
        tags = {**config.tags, "slipway:model": config.name, **environment.tags}
        for name, value in sorted(tags.items()):
            cdk.Tags.of(self).add(name, value)
        limit_roles(self, environment.permissions_boundary_arn)
        place = artifact_place(config, environment)
        key = self._key(config, environment, place)
        ssm.CfnParameter(self, "KeyArn", name=place.key_parameter, type="String", value=key.key_arn)
        if config.artifacts.compile is not None:
            compiling = CompileRole(
                self,
                "Compiling",
                environment=environment,
                artifact_key_arn=key.key_arn,
                place=place,
            )
            ssm.CfnParameter(
                self,
                "CompileRoleArn",
                name=place.compile_role_parameter,
                type="String",
                value=compiling.role.role_arn,
            )

    def _key(self, config: ModelConfig, environment: Environment, place: ArtifactPlace) -> kms.IKey:
        if place.key_arn is not None:
            return kms.Key.from_key_arn(self, "Key", place.key_arn)
        return kms.Key(
            self,
            "Key",
            description=f"Slipway: artifacts of {config.name} in {environment.name}",
            alias=place.key_alias,
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
