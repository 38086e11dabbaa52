# Needs: raw treebanks and links, <text>, <bpe>, models in <trained> and in <pruned>.
# Makes: <bpe>/trees and <bpe>/links, treebanks and links as the models read them;
#        <heads>/{attention,positions,syntax,alignment}.csv and sentences.jsonl; the same in <pruned>
#        of every gates run with λ above 0.

ROLES_FILES = ["attention.csv", "positions.csv", "syntax.csv", "sentences.jsonl", "roles.json"]
PENALISED = [plan.layout.run("prune", run=run) for run in plan.pruning.penalised()]


rule trees:
    """Check a treebank and cut its words as a pair's text was cut."""
    input:
        bpe=multiext("<bpe>/", *SEGMENTERS),
        raw=lambda w: plan.raw.of_tree(w.treebank).manifest,
    output:
        multiext("<bpe>/trees/{treebank}", ".csv", ".json"),
        out="<bpe>/trees/{treebank}.jsonl",
    params:
        given=given("raw", "bpe/", "out"),
        settings=lambda w: ["--treebank", w.treebank.partition(".")[2]],
    shell:
        RUN


rule roles:
    """Measure what every head of one model attends to."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *ROLES),
        treebanks=each("<bpe>/trees/{treebank}.jsonl", treebank=plan.raw.treebanks),
    output:
        out=multiext("<heads>/", *ROLES_FILES),
    threads: needs.threads("roles")
    resources:
        **needs.job("roles"),
    params:
        given=given("model/", "bpe/", "treebanks", "out/"),
        settings=plan.section("roles"),
    shell:
        RUN


use rule roles as pruned_roles with:
    """Measure what the heads do that are left in the gates runs of one pair and seed."""
    input:
        bpe=multiext("<bpe>/", *ROLES),
        treebanks=each("<bpe>/trees/{treebank}.jsonl", treebank=plan.raw.treebanks),
        models=[f"{folder}/model/{name}" for folder in PENALISED for name in MODEL_FILES],
    output:
        runs=[f"{folder}/{name}" for folder in PENALISED for name in ROLES_FILES],
    params:
        script="scripts/roles.py",
        given=given("bpe/", "treebanks", "runs/"),


rule links:
    """Cut the words of a test set as a pair's text was cut, and give them their links."""
    input:
        bpe=multiext("<bpe>/", *SEGMENTERS),
        text=each("<text>/{{aligned}}.{side}", side=SIDES),
        raw=plan.raw_links,
    output:
        out="<bpe>/links/{aligned}.{links}.jsonl",
    params:
        given=given("raw", "bpe/", "text/", "out"),
        settings=lambda w: ["--test", w.aligned],
    shell:
        RUN


ALIGNMENT_FILES = ["alignment.csv", "alignment.json"]
TRAINED, MEASURED = ([plan.layout.run(p, run=run) for run in plan.runs] for p in ("train", "heads"))


rule alignment:
    """Measure how the cross-attention of the models of one pair and seed aligns words."""
    input:
        bpe=multiext("<bpe>/", *SEGMENTERS),
        links=plan.links,
        models=[f"{folder}/model/{name}" for folder in TRAINED for name in MODEL_FILES],
    output:
        outs=[f"{folder}/{name}" for folder in MEASURED for name in ALIGNMENT_FILES],
    threads: needs.threads("alignment")
    resources:
        **needs.job("alignment"),
    params:
        given=given("bpe/", "links", "models/", "outs/"),
        settings=plan.section("alignment"),
    shell:
        RUN


use rule alignment as pruned_alignment with:
    """Measure how the cross-attention of the gates runs of one pair and seed aligns words."""
    input:
        bpe=multiext("<bpe>/", *SEGMENTERS),
        links=plan.links,
        models=[f"{folder}/model/{name}" for folder in PENALISED for name in MODEL_FILES],
    output:
        outs=[f"{folder}/{name}" for folder in PENALISED for name in ALIGNMENT_FILES],
    params:
        script="scripts/alignment.py",
