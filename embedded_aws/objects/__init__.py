"""S3 as strict as in AWS: moto takes requests that S3 refuses.

Wrong digests, another secret, a write that a bucket policy denies, or a copy of an object that was
replaced meanwhile would otherwise work here and fail in AWS.
"""
