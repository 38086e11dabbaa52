"""Analysis of results: tidy frames in, tidy frames out."""
