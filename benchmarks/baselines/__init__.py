"""What Slipway is measured against: the layout of the published case, built with reasonable care.

`published` is the Flask application, `stack` starts nginx and gunicorn around it.
"""
