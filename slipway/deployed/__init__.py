"""What AWS answers about a live endpoint, and the settings in it by the names of their fields.

Nothing here changes anything. `slipway import` writes the settings into a config, and
`slipway status` compares them with the files.

- `calls.py`: the calls that describe an endpoint.
- `reader.py`: makes all of them for an import; `described.py` has their answers.
- `packages.py`: reads the small files of model data in S3.
- `answers.py`: an answer that is taken apart, so that what nothing takes is listed.
- `fields.py`: where an endpoint configuration, a model and a component have which field.
- `scaling.py`: the same for scaling policies, scheduled actions and alarms.
"""
