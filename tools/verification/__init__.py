"""What the verifications share: the runner, and for those on hardware the programs."""
