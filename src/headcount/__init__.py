"""Attention heads in neural machine translation: the package behind the workflow."""
