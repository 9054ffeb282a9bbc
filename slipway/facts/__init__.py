"""What is known of the world, as dated tables with their sources, and typed readers of them."""
