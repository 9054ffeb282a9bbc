"""An AWS on this machine: enough of it to deploy, invoke, change and destroy Slipway's stacks.

One process serves every API on one loopback port. CloudFormation and SageMaker hosting are
implemented here, because what matters to a deployment (waiting, failing, rolling back, serving)
happens in them, and so is the evaluation of alarms; every other service is moto's. Nothing here reaches the network or touches a real
account. docs/embedded-aws.md lists what is emulated and what is not.
"""
