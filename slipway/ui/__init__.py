"""`slipway ui`: a page on this machine that shows what the commands say, and sends requests.

- `server.py`: listens on the loopback device, and makes the token.
- `guard.py`: refuses requests without the token, and requests of other hosts and other origins.
- `app.py`: the pages, and their parts that are asked for again and again.
- `looks.py`: looks at the account, once for all browsers.
- `log_tail.py`: the last lines of a model's log.
- `wording.py`: the sentences and columns of the commands.
- `templates`, `static`: HTML, CSS and htmx.

Nothing here changes an account but a request to an endpoint.
"""
