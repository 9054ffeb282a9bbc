"""Makes a config for the image that a notebook's call names, where no family knows the image."""
