"""T5 spelling correction on a real Triton, on the CPU, beside other ways to serve the same model.

`generate_model` and `serving_core` run in the measured servers.
"""
