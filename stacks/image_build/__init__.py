"""The programs that build an image: the Lambda function and the build's script."""
