"""Asynchronous endpoints: a queue, workers that call the container, and answers in S3.

`requests` reads a request, `queue` holds the requests of an endpoint, and `processing` does the
work of one request. Sources, read 2026-11-24:
https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference.html and the pages below it.
"""
