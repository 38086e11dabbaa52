# Makes: nothing; it lists every file that an experiment consists of, for rule all to ask for.
#
# Snakemake makes what is asked for, and does not miss a file in the middle while what follows it is
# there. `workflow/bridge.py plan` refuses a rule whose files are not listed here.

everything = [
    *expand(rules.bpe.output, pair=pairs),
    *expand(rules.train.output, pair=pairs, run=runs, seed=seeds),
    *expand(rules.importance.output, pair=pairs, run=runs, seed=seeds),
    *expand(rules.masking.output, pair=pairs, run=runs, seed=seeds),
    *expand(rules.roles.output, pair=pairs, run=runs, seed=seeds),
    *expand(rules.relevance.output, pair=pairs, run=runs, seed=seeds),
    *expand(rules.bleu.output, phase="train", pair=pairs, run=runs, seed=seeds),
    *expand(rules.bleu.output, phase="prune", pair=pairs, run=pruned, seed=seeds),
    *(file for each in made for file in each),
    *rules.report.output,
]

for pair in pairs:
    everything += expand(rules.text.output, pair=pair, split=plan.splits(pair))
    everything += expand(rules.trees.output, pair=pair, treebank=plan.treebanks.of_pair(pair))
    for phase, named in (("train", runs), ("prune", pruned)):
        everything += expand(
            rules.translate.output,
            phase=phase,
            pair=pair,
            run=named,
            seed=seeds,
            test=plan.tests(pair),
        )

if pruned:
    for making, *ways in (
        (rules.gates, "gates"),
        (rules.scratch, "scratch"),
        (rules.fine_tune, "importance", "random"),
    ):
        named = plan.pruning.named(*ways)
        everything += expand(making.output, pair=pairs, run=named, seed=seeds)
    everything += expand(
        rules.untuned_masking.output, pair=pairs, run=plan.pruning.starts(), seed=seeds
    )
    everything += expand(rules.pruned_roles.output, pair=pairs, seed=seeds)
    everything += expand(rules.speed.output, pair=pairs, seed=seeds)

if ablated:
    for measuring in (rules.ablation, rules.pruning_profile, rules.share_speed):
        everything += expand(measuring.output, pair=pairs, run=ablated, seed=seeds)
    if plan.ablation.own.updates:
        everything += expand(rules.training_profile.output, pair=pairs, run=ablated, seed=seeds)
