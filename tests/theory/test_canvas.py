"""Conditional tables against sums over the joint."""

import numpy as np

from dprm.theory.canvas import check_conditionals, conditionals_of

from .brute import conditional


def test_conditionals_of_a_joint_equal_direct_sums_at_every_canvas():
    joint = np.random.default_rng(0).dirichlet(np.ones(27)).reshape(3, 3, 3)
    table = conditionals_of(joint)
    for canvas in np.ndindex(4, 4, 4):
        for i, token in enumerate(canvas):
            expected = conditional(joint, canvas, i, 3) if token == 3 else np.eye(3)[token]
            np.testing.assert_allclose(table[canvas][i], expected, atol=1e-14)


def test_a_canvas_of_mass_zero_gets_the_uniform_law():
    joint = np.zeros((2, 2, 2))
    joint[0, 0, 0] = 1.0
    np.testing.assert_array_equal(conditionals_of(joint)[1, 2, 2][1], [0.5, 0.5])


def test_a_callable_denoiser_is_tabulated_and_visible_rows_become_one_hot():
    table = check_conditionals(lambda canvas: np.full((2, 2), 0.5), 2, 2)
    np.testing.assert_array_equal(table[2, 2], [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_array_equal(table[1, 2], [[0.0, 1.0], [0.5, 0.5]])
