"""Looks at a live account, and changes nothing in it; asks endpoints.

- `preflight`: what a deploy needs, checked before it.
- `invoke`: one request.
- `status`: what an endpoint really serves, and why a deployment failed.
- `deployment.py`: the last deployment of a stack, and what stands in the way of the next one.
- `history.py`: what an endpoint did in the last hours, and `plots.py`, which draws it.
- `shadow_report.py`: compares two variants by what SageMaker captured.
- `leftovers.py`: what a destroyed model left behind.

`slipway.deployed` has the calls that describe endpoints, and reads their answers.
"""
