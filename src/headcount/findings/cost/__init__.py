"""What the jobs of an experiment took: seconds and memory, by rule."""
