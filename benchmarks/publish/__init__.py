"""Measures `slipway publish` beside s5cmd and the AWS CLI, against versitygw on this machine."""
