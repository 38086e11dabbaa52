"""Names of the files in folders of models and of segmented pairs, for scripts and rules alike."""

SIDES = ("src", "tgt")  # source and target

DESCRIPTION, WEIGHTS = "model.json", "weights.safetensors"
MODEL_FILES = (DESCRIPTION, WEIGHTS)
"""Files of a model."""

CLASSIFIER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
"""A fine-tuned classifier and its tokeniser, as the Hugging Face library saves them."""
PRETRAINED_SOURCES = ("*.json", "*.safetensors", "*.spm", "*.model", "*.txt")
"""Files of models and tokenisers of that library, without code and pickles."""
ENTAILMENT_PARTS = ("train", "dev", "matched", "mismatched")
"""Parts of the labelled pairs of a corpus."""

SEGMENTATION = "segmentation.json"
CODES = tuple(f"{side}.codes" for side in SIDES)
VOCABULARIES = tuple(f"{side}.vocab" for side in SIDES)
SEGMENTERS = (SEGMENTATION, *CODES, *VOCABULARIES)
"""Files that segment text and number subwords. Part of every list below."""


def with_text(*splits: str) -> tuple[str, ...]:
    """Return `SEGMENTERS` and both sides of these splits (train, dev) as subwords."""
    return (*SEGMENTERS, *(f"{split}.{side}" for split in splits for side in SIDES))


TRAINING = with_text("train", "dev")
"""All files of a segmented pair, which training reads."""
RELEVANCE = with_text("dev")
ROLES = (*RELEVANCE, "train.src")  # rare words are rare there
TIMING = (*SEGMENTERS, "dev.src")
