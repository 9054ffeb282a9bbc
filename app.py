"""The CDK app of this project."""

from slipway.cdk import App

App(__file__).synth()
