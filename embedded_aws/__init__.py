"""An AWS on this machine: enough of it to deploy, invoke, change and destroy Slipway's stacks.

One process serves every API on one loopback port. CloudFormation, SageMaker hosting, the evaluation
of alarms and scaling are implemented here. The important events of a deployment happen in them:
waiting, failing, rolling back, serving, notifying. Every other service is moto's. Nothing here
reaches the network or touches a real account. docs/embedded-aws.md lists what is emulated and what
is not.
"""
