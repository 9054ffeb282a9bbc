"""Builds versitygw, an S3 server that is not moto: `make versitygw`."""
