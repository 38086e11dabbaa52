"""The text step on two files, for tests of what it keeps, refuses and says."""

import json

from script_runner import run_script

from headcount.data.manifest import write_manifest


class Step:
    """The text step on two files, run as a script."""

    def __init__(self, folder):
        self.folder = folder
        self.out = folder / "out"

    def __call__(self, src, tgt, split="train", *flags, suffix="", member=None):
        sides = {
            "en": {"file": f"a{suffix}", "member": member},
            "de": {"file": f"b{suffix}", "member": member},
        }
        for side, content in zip(sides.values(), (src, tgt), strict=True):
            (self.folder / side["file"]).write_bytes(content)
        write_manifest(self.folder, {"corpus": "c"}, {split: sides})
        return self.again(split, *flags)

    def again(self, split, *flags):
        out = [self.out / f"{split}.{end}" for end in ("src", "tgt", "json")]
        return run_script(
            "text",
            ["--raw", self.folder / "manifest.json", "--src-lang", "en", "--tgt-lang", "de"]
            + ["--split", split, "--out-src", out[0], "--out-tgt", out[1], "--counts", out[2]]
            + list(flags),
        )

    def result(self, split="train"):
        texts = [(self.out / f"{split}.{side}").read_bytes() for side in ("src", "tgt")]
        return texts, json.loads((self.out / f"{split}.json").read_text())
