"""Models of Hugging Face and CTranslate2: import, hooks, classifiers, export."""
