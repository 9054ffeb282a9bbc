"""Turns plans into CloudFormation: no look-ups, no clock, no randomness."""
