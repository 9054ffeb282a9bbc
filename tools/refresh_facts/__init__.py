"""Writes the tables of slipway/facts anew, each from its sources.

`make facts` runs those that need nothing but the pinned packages. A run that finds nothing new
leaves the file as it is, so that its date is that of the last change.
"""
