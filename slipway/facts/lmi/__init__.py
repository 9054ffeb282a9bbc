"""What is known of AWS's LMI images: versions, options, frameworks, partitioning."""
