"""What runs while an image is built: the Lambda function and the build's script."""
