"""The Lambda function that CloudFormation calls before it deploys a foundation."""
