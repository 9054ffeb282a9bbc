"""The Lambda function that CloudFormation calls before and after it updates an endpoint."""
