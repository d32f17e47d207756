"""The map of proofs names what is there, and nothing of the proof chapters is missing from it."""

from dprm.theory import statements
from dprm.theory.proofs import PROOFS, proof_table

STEPS = [step for row in PROOFS for step in row.steps]


def test_every_statement_that_is_named_exists_and_none_is_named_twice():
    named = [name for step in STEPS for name in step.statements]
    assert set(named) <= {each.name for each in statements()}
    assert len(named) == len(set(named))


def test_what_no_proof_names_are_examples_of_hosts_and_limits_of_a_condition():
    named = {name for step in STEPS for name in step.statements}
    rest = {each.name for each in statements()} - named
    assert all(name.startswith("ordering/") or name in ALONE for name in rest), rest


# Counter-examples that belong to no single step.
ALONE = {"doob/terminal-sampled", "gating/large-delta", "gating/random-order"}


def test_rows_can_be_read_by_themselves_but_for_one_step():
    labels = [step.label for step in STEPS]
    assert len(labels) == len(set(labels))
    assert [step.needs for step in STEPS if step.needs] == [("thm:online_main",)]
    assert set(STEPS[-1].needs) <= set(labels)


def test_the_table_has_a_line_for_every_result():
    assert proof_table().count("\n") == len(STEPS) + 1
