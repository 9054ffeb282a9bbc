"""What runs inside a SageMaker endpoint; imports nothing from the packages that deploy it.

Always import these as `containers.FAMILY`: a family's bare name would shadow NVIDIA's or
OpenAI's package of that name.
"""
