"""Upper bounds on Omega*(q), the conjugate of a weighted sum Omega of regularizers.

The certificate subtracts Omega*(q) from its dual bound. Any split q = sum_j q_j gives
Omega*(q) <= sum_j weight_j Omega_j*(q_j / weight_j). So a split that is not optimal makes the dual bound
loose but never wrong. In this module a *part* is one summand (weight_j, Omega_j), and q_j is its *share*.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from nerm.atoms.regularizer import Regularizer, SquaredL2, along_axes
from nerm.model.blocks import EPS
from nerm.model.problem import Problem
from nerm.typing import Floats

Parts: TypeAlias = list[tuple[float, Regularizer]]  # a sum of regularizers with positive weights

NEGLIGIBLE = 1e-8  # relative: a gap, an optimum or an error below this counts as nothing
MOST_STEPS = 1_000  # the limit of iterations of every iterative method in this package
MOST_OPERATIONS = 2e10  # on larger problems, multipliers are not shifted
MOST_COEFFICIENTS = 4_000  # with more, q is not split by cvxpy, and no dense (d, d) basis is made


class ConjugateValue(NamedTuple):
    """Upper bounds on Omega* at a multiple t q and at a point near q.

    Attributes
    ----------
    shrink : float
        t in [0, 1]: the largest factor found for which Omega*(t q) is finite.
    value : float
        An upper bound on Omega*(t q).
    nearest : (d,) array or None
        If t < 1, a point close to q at which Omega* is finite.
    nearest_value : float
        An upper bound on Omega*(nearest).
    reason : str
        Why t < 1.

    """

    shrink: float
    value: float
    nearest: Floats | None = None
    nearest_value: float = 0.0
    reason: str = ""


def parts_of(regularizers: Iterable[tuple[float, Regularizer]]) -> Parts:
    """Return the pairs (weight, atom) of a sum of regularizers.

    The weights of equal atoms are added, and pairs of weight 0 are left out.
    """
    weights: dict[Regularizer, float] = {}
    for weight, atom in regularizers:
        weights[atom] = weights.get(atom, 0.0) + weight
    return [(weight, atom) for atom, weight in weights.items() if weight > 0]


def square_weight(parts: Iterable[tuple[float, Regularizer]]) -> float:
    """Return mu, the total weight of the squared l2 norm (mu/2) ||w||^2."""
    return float(sum(weight for weight, atom in parts_of(parts) if isinstance(atom, SquaredL2)))


def free_directions(parts: Parts, d: int) -> Floats:
    """Return an orthonormal basis, (d, k), of the directions that no regularizer in `parts` penalizes.

    The basis vectors are coordinate axes where possible.
    """
    if not parts:
        return np.eye(d) if d <= MOST_COEFFICIENTS else np.zeros((d, 0))
    common = parts[0][1].free(d)
    for _, atom in parts[1:]:
        if common.shape[1]:
            # a vector lies in both spaces iff its residual after projection on the other space is 0
            other = atom.free(d)
            _, values, vectors = np.linalg.svd(common - other @ (other.T @ common))
            common = along_axes(common @ vectors[int((values > 1e-9).sum()) :].T)
    return common


def unpunished(problem: Problem) -> Floats:
    """Return a basis, (d, k), of the directions of w that no regularizer penalizes.

    For a kernel problem the basis is empty, k = 0.
    """
    d = problem.hypothesis.size
    return np.zeros((d, 0)) if problem.is_kernel else free_directions(parts_of(problem.regularizers), d)


def conjugate_of_sum(parts: Parts, q: Floats, squared_norm: Callable[[Floats], float]) -> ConjugateValue:
    """Return an upper bound on Omega*(t q) for the largest t in [0, 1] that is found.

    t is 1 if a finite bound is found at q itself. Omega is the sum of (mu/2) ||w||^2, which collects all
    squared l2 terms, and of the other parts weight_j Omega_j. Its conjugate is the minimum over all splits of
    q::

        Omega*(q) = min over q_j of  sum_j weight_j Omega_j*(q_j / weight_j) + ||q - sum_j q_j||^2 / (2 mu)

    If mu = 0, the constraint sum_j q_j = q replaces the last term. `squared_norm` computes ||q||^2: in the
    function space of a kernel, or Euclidean.
    """
    mu = square_weight(parts)
    others = [(weight, atom) for weight, atom in parts if not isinstance(atom, SquaredL2)]
    if not others:
        square = squared_norm(q)
        if mu > 0 or square == 0:
            return ConjugateValue(1.0, square / (2 * mu) if mu > 0 else 0.0)
        reason = "no regularizer punishes anything, and sum c x is not 0"
        return ConjugateValue(0.0, 0.0, np.zeros_like(q), 0.0, reason)
    shares = _split(others, mu, q)
    found = _along(others, mu, shares, q)
    if len(others) == 1 or len(q) > MOST_COEFFICIENTS:
        return found
    z = (q - sum(shares)) / (mu or np.inf)
    least = float(q @ z) - 0.5 * mu * float(z @ z) - sum(weight * atom.value(z) for weight, atom in others)
    if found.shrink > 1 - NEGLIGIBLE and found.value - least <= NEGLIGIBLE * found.value:
        return found  # because Omega*(q) >= q.z - Omega(z) = least for every z
    from nerm.atoms.custom_regularizer import split

    exact = _along(others, mu, split(others, q, mu), q)
    if exact.shrink > 1 - NEGLIGIBLE:
        return min(found, exact, key=lambda one: (one.shrink <= 1 - NEGLIGIBLE, one.value))
    near = _along(others, mu, split(others, q, 1e-3), q)  # a small squared l2 term gives a point near q
    best = max(found, exact, near, key=lambda one: one.shrink if one.value < np.inf else 0.0)
    return best._replace(nearest=near.nearest, nearest_value=near.nearest_value)


def _inside(part: tuple[float, Regularizer], share: Floats) -> tuple[Floats, float]:
    """Shrink the share q_j of one part until the conjugate of the part is finite.

    Return the shrunk share, (d,), and weight_j Omega_j*(q_j / weight_j) at this share.
    """
    weight, atom = part
    share = _punished(part, share)
    share = atom.finite_multiple(share / weight) * share
    return share, weight * atom.conjugate(share / weight)


def _punished(part: tuple[float, Regularizer], share: Floats) -> Floats:
    """Remove the directions that a part does not penalize from its share.

    Return the rest, (d,).
    """
    free = part[1].free(len(share))
    return share - free @ (free.T @ share)


def _along(parts: Parts, mu: float, shares: list[Floats], q: Floats) -> ConjugateValue:
    """Return the two bounds on Omega* (`ConjugateValue`) that one split of q gives.

    `shares` holds one share q_j per part. With a squared l2 norm of weight mu > 0, each share is shrunk until
    its conjugate is finite; the square gets the remainder q - sum_j q_j, and the bound is at q itself.

    Otherwise the remainder is added to the shares for the bound at t q, and all shares are multiplied by the
    largest t for which all conjugates are finite. For the bound at `nearest`, each share is shrunk on its
    own; `nearest` is the sum of the shrunk shares.
    """
    pairs = [_inside(part, share) for part, share in zip(parts, shares, strict=True)]
    inside, total = [share for share, _ in pairs], sum(value for _, value in pairs)
    if mu:
        rest = q - sum(inside)
        return ConjugateValue(1.0, total + float(rest @ rest) / (2 * mu))
    t, best = 0.0, shares
    outside = [_punished(part, share) for part, share in zip(parts, shares, strict=True)]
    for full in chain(_completed(parts, inside, q), _completed(parts, outside, q)):
        rows = zip(parts, full, strict=True)
        multiple = min(atom.finite_multiple(share / weight) for (weight, atom), share in rows)
        if multiple > t:
            t, best = multiple, full
        if t == 1:
            break
    rows = zip(parts, best, strict=True)
    value = sum(weight * atom.conjugate(t * share / weight) for (weight, atom), share in rows) if t else 0.0
    reason = ""
    if t == 0:
        reason = "the regularizers' conjugate is infinite at every multiple of sum c x"
    elif t <= 0.5:
        reason = f"sum c x had to shrink to {t:.1g} of itself for the regularizers' conjugate"
    nearest = sum(inside, start=np.zeros_like(q)) if t < 1 else None
    return ConjugateValue(t, value, nearest, total, reason)


def _completed(parts: Parts, shares: list[Floats], q: Floats) -> Iterator[list[Floats]]:
    """Add the remainder q - sum_j share_j to the shares in several ways; yield the lists of shares.

    Each list adds up to q. The remainder is added to one share, for each part in turn. If several parts have
    directions that they do not penalize, the last list divides the remainder among all parts, so that each
    part gets only directions that it penalizes.
    """
    rest = q - sum(shares)
    for j in range(len(parts)):
        yield [share + rest if i == j else share for i, share in enumerate(shares)]
    free = [atom.free(len(rest)) for _, atom in parts]
    if sum(basis.shape[1] > 0 for basis in free) > 1:
        projectors = [np.eye(len(rest)) - basis @ basis.T for basis in free]
        common = np.linalg.lstsq(sum(projectors), rest, rcond=1e-10)[0]
        yield [share + projector @ common for share, projector in zip(shares, projectors, strict=True)]


def _split(parts: Parts, mu: float, q: Floats) -> list[Floats]:
    """Return one share of q per part.

    The shares need not add up to q: `_completed` adds the remainder. If there is only one part, its share is
    optimal. If there are several and all are built-in norms, the shares are nearly optimal. In all other
    cases every share is 0. `mu` is the weight of the squared l2 norm.
    """
    if len(parts) == 1:
        (weight, atom), scale = parts[0], mu or 1e-3
        if mu == 0 and np.isfinite(atom.conjugate(q / weight)):
            return [q]
        return [q - scale * atom.prox(q / scale, weight / scale)]
    return (
        _projected(parts, q) if all(atom.is_norm(len(q)) for _, atom in parts) else [0.0 * q for _ in parts]
    )


def _projected(norms: Parts, q: Floats) -> list[Floats]:
    """Project q on the sum of the scaled dual balls, and return the share from each ball.

    The ball of a norm is weight * (its dual unit ball). Each sweep sets one share after the other to the
    projection v - prox(v) of v = q - (sum of the other shares) on its ball. The first sweep is already exact
    for l1 followed by group l2.
    """
    order = sorted(range(len(norms)), key=lambda j: norms[j][1].name != "l1")
    shares, rest = [np.zeros_like(q) for _ in norms], q
    for _ in range(MOST_STEPS):
        before = rest
        for j in order:
            weight, norm = norms[j]
            left = norm.prox(rest + shares[j], weight)
            shares[j], rest = rest + shares[j] - left, left
        if np.linalg.norm(rest - before) <= EPS * np.linalg.norm(q):
            break
    return shares
