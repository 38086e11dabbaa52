# Needs: <text> of all pairs.
# Makes: with `many_pairs.one_model` <bpe> of all pairs and of their mixture, in place of rule bpe;
#        <trained> of every pair, a copy of the training on the mixture; else nothing.

TOGETHER = plan.settings.pairs if plan.one_model else []


rule shared_bpe:
    """Learn subwords from the text of all pairs; cut it, mark the target languages, and mix it."""
    input:
        texts=[
            file.replace("<text>", plan.layout.text(p))
            for p in TOGETHER
            for file in CLEANED.values()
        ],
    output:
        out_folders=[
            f"{plan.layout.bpe(pair)}/{name}" for pair in [*TOGETHER, SHARED] for name in TRAINING
        ],
    resources:
        **needs.text(),
    params:
        given=given("texts/", "out_folders/"),
        settings=[*plan.section("bpe"), *plan.spelling()],
        more=plan.mixture_flags(),
    shell:
        RUN


rule pair_run:
    """Copy the training that all pairs share into the folder of one pair."""
    input:
        files=[
            file.replace("<trained>", plan.layout.run("train", SHARED))
            for files in RUN_FILES.values()
            for file in ([files] if isinstance(files, str) else files)
        ],
    output:
        **RUN_FILES,
    params:
        given=given("files", "out/"),
    shell:
        RUN
