"""Figures that a declaration cannot describe, drawn by hand."""
