"""What CloudFormation calls before and after it updates an endpoint."""
