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
        "data/raw/{corpus}/{recipe}/manifest.json",
    wildcard_constraints:
        corpus=alternatives(n for n, corpus in plan.corpora.items() if not corpus.generator),
    params:
        settings=plan.entry_flags,
    shell:
        "python {params.script} --corpus {wildcards.corpus:q} {params.settings:q}"
        " --out {output:q} > {log:q} 2>&1"


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
        src="<text>/{split}.src",
        tgt="<text>/{split}.tgt",
        counts="<text>/{split}.json",
    resources:
        **needs.text(),
    params:
        languages=plan.languages,
        draw=plan.raw.draw,
        text=plan.section("text"),
    shell:
        "python scripts/text.py --raw {input.raw:q} {params.languages:q}"
        " --split {wildcards.split:q} {params.draw} --out-src {output.src:q} --out-tgt {output.tgt:q}"
        " --counts {output.counts:q} --held-out {input.held_out:q} {params.text:q}"
        " > {log:q} 2>&1"


rule bpe:
    """Learn subwords from the training text; cut training and dev text into them."""
    input:
        train_src="<text>/train.src",
        train_tgt="<text>/train.tgt",
        dev_src="<text>/dev.src",
        dev_tgt="<text>/dev.tgt",
    output:
        multiext("<bpe>/", *TRAINING),
    resources:
        **needs.text(),
    params:
        languages=plan.languages,
        pretokenised=plan.pretokenised,
        bpe=plan.section("bpe"),
        spelling=plan.spelling(),
        folder=subpath(output[0], parent=True),
    shell:
        "python scripts/bpe.py --train-src {input.train_src:q} --train-tgt {input.train_tgt:q}"
        " --dev-src {input.dev_src:q} --dev-tgt {input.dev_tgt:q} {params.languages:q}"
        " {params.pretokenised} {params.bpe:q} {params.spelling:q} --out-folder {params.folder:q} > {log:q} 2>&1"
