"""An independent reading of the definitions: explicit recursion on lists, no tables, no memo, no numpy laws."""

from collections import Counter
from itertools import combinations, combinations_with_replacement, product
from math import exp, factorial, log, prod


def mass(joint, canvas, vocab):
    """P(the visible tokens of a canvas)."""
    return sum(
        float(joint[x])
        for x in product(range(vocab), repeat=joint.ndim)
        if all(z in (vocab, t) for z, t in zip(canvas, x))
    )


def conditional(joint, canvas, i, vocab):
    """p(x_i = · | canvas) straight from the joint."""
    total = mass(joint, canvas, vocab)
    return [mass(joint, (*canvas[:i], y, *canvas[i + 1 :]), vocab) / total for y in range(vocab)]


def base_value(joint, reward, canvas, beta, tokens, m):
    """(h(s), [(A, q0(A|s), R*(A;s))]) by plain recursion."""
    vocab = joint.shape[0]
    masked = [i for i, z in enumerate(canvas) if z == vocab]
    if not masked:
        return exp(beta * float(reward[canvas])), []
    rows = {i: conditional(joint, canvas, i, vocab) for i in masked}
    options = list(combinations(masked, min(m, len(masked))))
    psi = [prod(max(rows[i]) for i in A) for A in options]
    entries, h = [], 0.0
    for A, score in zip(options, psi):
        future = 0.0
        for values in product(range(vocab), repeat=len(A)):
            if tokens == "greedy":
                chance = float(all(y == rows[i].index(max(rows[i])) for i, y in zip(A, values)))
            else:
                chance = prod(rows[i][y] for i, y in zip(A, values))
            if chance > 0:
                after = list(canvas)
                for i, y in zip(A, values):
                    after[i] = y
                future += chance * base_value(joint, reward, tuple(after), beta, tokens, m)[0]
        share = score / sum(psi)
        entries.append((A, share, log(future) / beta))
        h += share * future
    return h, entries


def soft_bon(q, weight, draws):
    """E over shortlists of draws i.i.d. from q of the law ∝ weight on the shortlist, by a sum over multisets."""
    law = [0.0] * len(q)
    for shortlist in combinations_with_replacement(range(len(q)), draws):
        ways = factorial(draws) / prod(factorial(count) for count in Counter(shortlist).values())
        chance = ways * prod(float(q[a]) for a in shortlist)
        for a in shortlist:
            law[a] += chance * float(weight[a]) / sum(float(weight[b]) for b in shortlist)
    return law
