"""Golden files: every table and figure that the project makes from frozen measurements."""
