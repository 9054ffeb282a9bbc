"""`slipway ui`: a page on this machine that shows what the commands say, and sends requests.

- `server.py`: listens on the loopback device, and makes the token.
- `guard.py`: refuses requests without the token, and requests of other hosts and other origins.
- `app.py`: the pages, their parts, and the words of the commands.
- `looks.py`: looks at the account and its logs, once for all browsers.
- `templates`, `static`: HTML, CSS and htmx.

Nothing here changes an account but a request to an endpoint.
"""
