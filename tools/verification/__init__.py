"""What the verifications share: stages, and for those on hardware the runner and programs."""
