"""Classifiers of sentence pairs: their declarations name functions of other modules."""
