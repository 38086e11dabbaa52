"""Names of the files in the folders that jobs hand on: of a trained model, of a segmented pair.

Scripts and rules take them from here, so that a job records every file that its rule lists.
"""

SIDES = ("src", "tgt")  # source and target

DESCRIPTION, WEIGHTS = "model.json", "weights.safetensors"
MODEL_FILES = (DESCRIPTION, WEIGHTS)
"""What loads a model alone."""

CLASSIFIER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
"""A fine-tuned classifier and its tokeniser, as the Hugging Face library saves them."""
CLASSIFIER_SOURCES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.spm")
"""What any of the library's models and tokenisers are read from; no code and no pickles."""
PRETRAINED_SOURCES = ("*.json", "*.safetensors", "*.spm", "*.model", "merges.txt")
"""What a translation model of one's own and its subwords are read from; no code and no pickles."""
ENTAILMENT_PARTS = ("train", "dev", "matched", "mismatched")
"""What the labelled pairs of a corpus are parted into."""

SEGMENTATION = "segmentation.json"
CODES = tuple(f"{side}.codes" for side in SIDES)
VOCABULARIES = tuple(f"{side}.vocab" for side in SIDES)
SEGMENTERS = (SEGMENTATION, *CODES, *VOCABULARIES)
"""What cuts text into subwords, numbers them, and joins them again; part of every list below."""


def with_text(*splits: str) -> tuple[str, ...]:
    """`SEGMENTERS`, and both sides of these splits (train, dev) as subwords."""
    return (*SEGMENTERS, *(f"{split}.{side}" for split in splits for side in SIDES))


TRAINING = with_text("train", "dev")
"""What training reads: all that lies in the folder of a segmented pair."""
RELEVANCE = with_text("dev")
ROLES = (*RELEVANCE, "train.src")  # rare words are rare there
TIMING = (*SEGMENTERS, "dev.src")
