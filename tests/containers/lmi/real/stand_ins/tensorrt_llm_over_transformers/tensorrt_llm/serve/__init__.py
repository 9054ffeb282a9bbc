"""The server of OpenAI's API, of which the handler takes the forms of requests and answers."""
