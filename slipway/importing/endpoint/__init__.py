"""Makes a config of an endpoint that is there already, from what AWS's Describe calls answer.

Nothing here calls AWS: `slipway.deployed` does, and hands the answers over.

- `findings.py`: guesses, changes, omissions and refusals, as they are found.
- `endpoints.py`: joins the sections; the entry of this package.
- `variants.py`, `containers.py`: the section `endpoint`, and the container.
- `data.py`: what is captured, and the requests that lie in S3.
- `scaling.py`, `alarms.py`, `rollouts.py`: the sections of these names.
"""
