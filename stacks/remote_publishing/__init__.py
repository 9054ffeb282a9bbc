"""The programs of remote publishing: what a build runs, and the function that ends builds."""
