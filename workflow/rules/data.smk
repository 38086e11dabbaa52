# Needs: config/corpora.yaml, and the network, a mirror folder or the generator.
# Makes: data/raw (shared by all experiments), <text>/<pair>, <bpe>/<pair>.
#
# The files of a corpus lie beside its manifest, which holds their checksums and stands for them here:
# how many there are differs from corpus to corpus, and an output cannot depend on a wildcard.


rule download:
    """Fetch the files of a corpus, or one of its treebanks, under their checksums."""
    input:
        lambda w: plan.treebanks.own_files(w) or plan.own_files(w.corpus),
    output:
        "data/raw/{corpus}/{recipe}/manifest.json",
    log:
        "data/raw/{corpus}/{recipe}/download.log",
    wildcard_constraints:
        corpus=plan.corpus_names(generated=False),
    params:
        code=code("scripts/download.py"),
        entry=lambda w: plan.treebanks.entry(w) or plan.entry(w.corpus),
    message:
        "Fetching {wildcards.corpus}"
    shell:
        "python scripts/download.py --corpus {wildcards.corpus:q} --entry {params.entry:q}"
        " --out {output:q} > {log:q} 2>&1"


rule synthetic:
    """Generate an embedded corpus with its trees."""
    output:
        "data/raw/{corpus}/{recipe}/manifest.json",
    log:
        "data/raw/{corpus}/{recipe}/synthetic.log",
    wildcard_constraints:
        corpus=plan.corpus_names(generated=True),
    params:
        code=code("scripts/synthetic.py"),
        settings=lambda w: plan.generator_flags(w.corpus),
    message:
        "Generating {wildcards.corpus}"
    shell:
        "python scripts/synthetic.py --corpus {wildcards.corpus:q} {params.settings:q}"
        " --out {output:q} > {log:q} 2>&1"


rule text:
    """Clean one split of a pair; filter it if it is for training."""
    input:
        raw=lambda w: plan.manifest(w.pair),
        held_out=lambda w: (
            plan.text(w.pair, plan.held_out(w.pair), "src") if w.split == "train" else []
        ),
    output:
        src="<text>/{pair}/{split}.src",
        tgt="<text>/{pair}/{split}.tgt",
        counts="<text>/{pair}/{split}.json",
    log:
        "<logs>/text/{pair}.{split}.log",
    params:
        code=code("scripts/text.py"),
        pair=lambda w: parse_pair(w.pair),
        text=plan.section("text"),
    message:
        "Cleaning {wildcards.pair} {wildcards.split}"
    shell:
        "python scripts/text.py --raw {input.raw:q} --src-lang {params.pair.src:q}"
        " --tgt-lang {params.pair.tgt:q} --split {wildcards.split:q} --out-src {output.src:q}"
        " --out-tgt {output.tgt:q} --counts {output.counts:q} --held-out {input.held_out:q}"
        " {params.text:q} > {log:q} 2>&1"


rule bpe:
    """Learn subwords from the training text; cut training and dev text into them."""
    input:
        train_src="<text>/{pair}/train.src",
        train_tgt="<text>/{pair}/train.tgt",
        dev_src="<text>/{pair}/dev.src",
        dev_tgt="<text>/{pair}/dev.tgt",
    output:
        multiext("<bpe>/{pair}/", *TRAINING),
    log:
        "<logs>/bpe/{pair}.log",
    params:
        code=code("scripts/bpe.py"),
        pair=lambda w: parse_pair(w.pair),
        pretokenised=lambda w: "--pretokenised" if plan.pretokenised(w.pair) else "",
        bpe=plan.section("bpe"),
        folder=subpath(output[0], parent=True),
    message:
        "Learning subwords of {wildcards.pair}"
    shell:
        "python scripts/bpe.py --train-src {input.train_src:q} --train-tgt {input.train_tgt:q}"
        " --dev-src {input.dev_src:q} --dev-tgt {input.dev_tgt:q} --src-lang {params.pair.src:q}"
        " --tgt-lang {params.pair.tgt:q} {params.pretokenised} {params.bpe:q}"
        " --out-folder {params.folder:q} > {log:q} 2>&1"
