"""Programs that stand for containers, as processes of this machine.

A `process` runs under its `supervisor`, so that it never outlives the embedded AWS. `logs` ships
its output to CloudWatch Logs.
"""
