"""What endpoints of the embedded AWS with the real server have in common."""

REGION = "us-east-1"
REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "sagemaker.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}
