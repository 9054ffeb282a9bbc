"""Requests and answers in the forms of OpenAI's API, as AWS's LMI images accept them.

A body with `prompt` is a completion, and a body with `messages` is a chat. `requests` reads both,
`chat_template` makes a prompt of messages, and `answers` writes the answers.
"""
