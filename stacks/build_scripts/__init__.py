"""The programs that run in builds: the script of image builds, and the check of a source."""
