"""Fits the constants of `slipway/sizing` to public measurements, and says how far they hold."""
