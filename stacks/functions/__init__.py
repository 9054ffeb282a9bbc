"""The Lambda functions of the stacks.

Each module or package beside `answers` is one function. Its package for Lambda has it, `answers`
and this file, and nothing else: it imports the standard library, boto3 and these alone.
"""
