"""Facts about AWS and libraries, as dated tables with sources, and typed readers of them."""
