"""SageMaker's data plane. `api` answers a request; `errors` has its errors in AWS's words."""
