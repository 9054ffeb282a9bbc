"""Writes the IAM policies that commands, pipelines and roles need: `slipway iam`."""
