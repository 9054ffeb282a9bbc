"""The Lambda function around an endpoint's update. It imports nothing outside of this package."""
