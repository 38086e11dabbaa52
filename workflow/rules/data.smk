# Needs: config/corpora.yaml, and the network, a mirror folder or the generator.
# Makes: data/raw (shared by all experiments), <text>, <bpe>.
#
# The files of a corpus lie beside its manifest, which holds their checksums and stands for them here:
# how many there are differs from corpus to corpus, and an output cannot depend on a wildcard.


rule download:
    """Fetch the files of a corpus, or one of its treebanks, under their checksums."""
    input:
        plan.own_files,
    output:
        out="data/raw/{corpus}/{recipe}/manifest.json",
    wildcard_constraints:
        corpus=alternatives(n for n, corpus in plan.corpora.items() if not corpus.generator),
    params:
        given=given("corpus", "out"),
        settings=plan.entry_flags,
    shell:
        RUN


use rule download as synthetic with:
    """Generate an embedded corpus with its trees."""
    input:
        [],
    wildcard_constraints:
        corpus=alternatives(n for n, corpus in plan.corpora.items() if corpus.generator),
    params:
        settings=lambda w: as_flags(plan.corpora[w.corpus].settings),


rule text:
    """Clean one split of a pair; filter it if it is for training."""
    input:
        raw=lambda w: plan.raw.of(w.pair).manifest,
        held_out=each("<text>/{other}.src", other=plan.held_out),
    output:
        out_src="<text>/{split}.src",
        out_tgt="<text>/{split}.tgt",
        counts="<text>/{split}.json",
    resources:
        **needs.text(),
    params:
        given=given("raw", "split", "out_src", "out_tgt", "counts", "held_out"),
        settings=plan.section("text"),
        more=plan.split_flags,
    shell:
        RUN


CLEANED = {
    f"{split}_{side}": f"<text>/{split}.{side}" for split in ("train", "dev") for side in SIDES
}


rule bpe:
    """Learn subwords from the training text; cut training and dev text into them."""
    input:
        **CLEANED,
    output:
        out_folder=multiext("<bpe>/", *TRAINING),
    resources:
        **needs.text(),
    params:
        given=given(*CLEANED, "out_folder/"),
        settings=[*plan.section("bpe"), *plan.spelling()],
        more=plan.bpe_flags,
    shell:
        RUN
