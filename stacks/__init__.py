"""Plan in, CloudFormation out: no look-ups, no clock, no randomness."""
