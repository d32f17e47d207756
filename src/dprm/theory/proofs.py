"""The map of proofs: three rows that can be read by themselves, each step with the statements that check it here.

Steps are in the order of the argument, and named as in the paper. An arrow is a use: every step of a row needs the ones
before it and none of another row, but for the last of the third, which takes its error bound from the second.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One result of the paper.

    Attributes:
        label: that of the paper. result: what it says, in a few words. statements: that check it here, by name.
        needs: labels of other rows that it uses.
    """

    label: str
    result: str
    statements: tuple[str, ...]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One argument, from its first lemma to what the main paper states."""

    name: str
    steps: tuple[Step, ...]


PROOFS = (
    Row(
        "alignment",
        (
            Step(
                "prop:teacher_forced_alignment",
                "teacher-forced chain and inference have the same marginals",
                ("alignment/marginals", "alignment/peeking", "alignment/parallel"),
            ),
            Step("lem:weighted_ce", "weighted cross-entropy keeps the conditional", ("predictor/cross-entropy",)),
            Step(
                "prop:bayes_invariance",
                "the Bayes predictor does not depend on the masks",
                ("predictor/bayes", "predictor/bayes-peeking", "predictor/bayes-normaliser"),
            ),
            Step(
                "cor:minimizer_preservation",
                "an order changes which states are seen, not the minimiser",
                ("predictor/minimizer", "predictor/misspecified"),
            ),
            Step("lem:chernoff", "Chernoff bound", ("sampling/chernoff",)),
            Step(
                "prop:sample_complexity_separation",
                "random masks need exponentially many samples, trajectories linearly many",
                ("sampling/random-masks", "sampling/trajectories", "sampling/reversed-step", "sampling/all-targets"),
            ),
        ),
    ),
    Row(
        "tracking",
        (
            Step(
                "lem:app_bucket_mean_concentration",
                "empirical-Bernstein radius of a cell's mean",
                ("tracking/bucket-mean", "tracking/repeated-events"),
            ),
            Step(
                "lem:app_bucket_reward_concentration",
                "the same through the logarithm",
                ("tracking/bucket-reward", "tracking/log-step"),
            ),
            Step(
                "lem:app_bucket_drift_tracking",
                "the same for a target that moves, at all times",
                ("tracking/drift", "tracking/drift-constant", "online/jump"),
            ),
            Step(
                "lem:app_uniform_score_approx",
                "error of the score: abstraction, sampling, gate, drift",
                ("score/uniform", "score/largest-gate", "score/fallback", "score/on-policy"),
            ),
            Step("lem:app_topm_regret", "regret 2mε", ("score/regret", "score/regret-shortlist", "score/sets")),
            Step("thm:online_main", "all of it at once", ("online/joint", "online/moving-host")),
            Step("cor:app_online_margin", "exact recovery where ε < Δ/2", ("score/margin",)),
        ),
    ),
    Row(
        "reward tilt",
        (
            Step("lem:app_h_recursion", "h backwards", ("doob/recursion",)),
            Step("prop:app_local_gibbs", "one step of P_β is π*", ("doob/one-step", "doob/teacher-forcing")),
            Step("lem:app_bounded_process_reward", "R* in [0, 1]", ("doob/bounded",)),
            Step(
                "prop:app_local_softbon_rate",
                "a shortlist of N draws is sinh²(β/2)/N away",
                ("softbon/local", "softbon/missed", "softbon/hard-shortlist"),
            ),
            Step("lem:app_path_kl_chain", "KL of trajectories", ("softbon/chain-rule",)),
            Step("prop:app_pathwise_softbon", "the rate along a trajectory, N by the state", ("softbon/by-state",)),
            Step("thm:layerwise_softbon", "the rate at the end", ("softbon/terminal", "doob/terminal")),
            Step("lem:app_variance_optimal", "which proposal has least variance", ("early/variance-optimal",)),
            Step(
                "lem:app_second_moment_comparison",
                "confidence within κ² of it, random masks not",
                ("early/confidence-moment", "early/random-moment", "early/softmax-proxy"),
            ),
            Step(
                "thm:app_early_sample_complexity_separation",
                "early: confidence needs exponentially fewer updates than random masks",
                ("early/separation", "early/interpolation"),
            ),
            Step("prop:app_entropy_cap", "a gated decoder has bounded entropy", ("gating/entropy-cap",)),
            Step(
                "thm:app_late_sample_complexity_separation",
                "late: the tilt finds what confidence hardly visits",
                ("late/residual-mass", "late/separation", "late/beta", "late/shortlist", "late/shared-parameters"),
            ),
            Step(
                "cor:app_practical_late_separation",
                "the same for a table that was fitted until ε < Δ/2",
                ("late/practical", "late/value-cost"),
                needs=("thm:online_main",),
            ),
        ),
    ),
)


def proof_table() -> str:
    """The map as Markdown."""
    lines = ["| row | result of the paper | says | checked by |", "| --- | --- | --- | --- |"]
    for row in PROOFS:
        for step in row.steps:
            more = f"; uses {', '.join(f'`{label}`' for label in step.needs)}" if step.needs else ""
            checks = ", ".join(f"`{name}`" for name in step.statements)
            lines.append(f"| {row.name} | `{step.label}` | {step.result}{more} | {checks} |")
    return "\n".join(lines)
