"""Slipway's core: from one YAML file per model to a deployment plan, and the command line.

Stages flow one way, each with one type:

    config/      YAML file      -> ModelConfig      reads files, nothing else
    planning/    ModelConfig    -> DeploymentPlan   pure: no files, no clock, no network
    publishing/  artifacts      -> S3 + the lock    the only stage that moves model bytes
    operations/  a live account -> answers          looks, never changes
    pruning/     a live account -> fewer objects    the only part that deletes
    rights/      DeploymentPlan -> IAM policies     pure, as planning is

The core never imports aws_cdk; config, facts and planning never import boto3.
"""

__version__ = "0.1.0"
