"""Norms of groups of coefficients, or of linear functions z = A w of them, as maxima over dual variables u.

In this module omega is the weight of a group (Omega, elsewhere, is the regularizer). A group g of entries of
z has one dual variable per entry. Without a linear map z = w:

    omega ||w_g||_2   =  max over ||u||_2 <= 1  of  omega u'w_g
    omega max_j |w_j| =  max over ||u||_1 <= 1  of  omega u'w_g

A log barrier smooths the maxima, as it does for the rows
(`nerm.solvers.interior_point.predictor_corrector`). On the central path each group has a multiplier t > 0,
and a max norm splits u into a >= 0 and b >= 0:

    EuclideanNorms   w = t u,                      t (1 - ||u||^2) = barrier
    MaxNorms         u = a - b,  sum a + b = 1,    a_j (t - w_j) = b_j (t + w_j) = barrier / (2 size)

where size is the number of coefficients in the group. The linearised equations give du = K dw + k with a
positive semidefinite matrix K and a vector k. In the Newton system of w, omega K is added to the matrix,
omega u to the gradient and omega k to the right-hand side; with a linear map these are A' (omega K) A,
A' omega u and A' omega k. Each group has its own step length, as each row has. u stays feasible, so it gives
a dual bound at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from nerm.atoms.regularizer import Norms, project_l1_ball
from nerm.solvers.interior_point.passes import TINY
from nerm.typing import Floats

LEAST = np.finfo(float).tiny
SIGNS = np.array([1.0, -1.0])[:, None, None]  # of w in t - w and t + w


class GroupNorms:
    """The dual variables of all norms of one kind, and the direction of their next step.

    There are G groups of `size` coefficients each. A subclass has these methods; w, dw and u are (G, size).

    ::

        start(w, barrier)                   set the point of the central path of w, barrier (G, 1)
        curvature()                         return the matrix K of du = K dw + k, (G, size, size)
        right_hand_side(w, target, limit)   return the vector k, (G, size); the direction leads to the point
                                            of the central path whose barrier is `target` times `goal`, and
                                            second-order terms are clipped at `limit` times `goal`
        follow(dw)                          set the direction along dw
        advance(step, keep)                 move along the direction; a group keeps at least the share `keep`
                                            of its distance to a bound
        nearest(u)                          return the nearest feasible u
        products                            the sum of the products in the equations of each group, (G,);
                                            omega times this sum is the part of the gap from this norm

    Attributes
    ----------
    norms
        The groups, their weights and the linear map.
    omega
        (G,), the weights.
    goal
        (G, 1), the sum of products of each group at barrier 1: the scale of its w, from the data.
    u, du
        (G, size), the dual variables, and the direction.
    """

    def __init__(self, norms: Norms, goal: Floats) -> None:
        self.norms, self.omega, self.goal = norms, norms.weights, goal[:, None]


class EuclideanNorms(GroupNorms):
    """Euclidean norms of groups of coefficients; groups of one coefficient give the l1 norm.

    Each group w_g has dual variables u with the equations w_g = t u and t (1 - `|u|^2`) = barrier. t has one
    number per group, (G, 1).
    """

    def start(self, w: Floats, barrier: Floats) -> None:
        """Set u and t of each group to the central path at w.

        The equations w = t u and t (1 - `|u|^2`) = barrier have a solution u with the length

            |u| = 2 |w| / (barrier + sqrt(barrier^2 + 4 |w|^2)).
        """
        size = np.linalg.norm(w, axis=1, keepdims=True)
        r = 2 * size / (barrier + np.hypot(barrier, 2 * size))
        self._set(np.divide(r * w, size, out=np.zeros_like(w), where=size > 0))
        self.t = np.hypot(0.5 * barrier, size) + 0.5 * barrier
        self.du, self.dt = np.zeros_like(w), np.zeros_like(self.t)

    def _set(self, u: Floats) -> None:
        """Set the dual variables u and their slack 1 - `|u|^2`, (G, 1)."""
        self.u, self._slack = u, np.maximum(1 - _dot(u, u), TINY)

    def curvature(self) -> Floats:
        """Return the matrix K = (I - 2 u u' / (1 + `|u|^2`)) / t of du = K dw + k, (G, size, size)."""
        shares = 2 / (2 - self._slack)[:, :, None]
        outer = self.u[:, :, None] * self.u[:, None, :]
        return np.asarray((np.eye(self.u.shape[1]) - shares * outer) / self.t[:, :, None])

    def _times(self, x: Floats) -> Floats:
        """Return K x, (G, size), for the matrix K of `curvature`."""
        return np.asarray((x - self.u * (2 * _dot(self.u, x) / (2 - self._slack))) / self.t)

    def right_hand_side(self, w: Floats, target: float, limit: float) -> Floats:
        """Return the vector k of du = K dw + k, (G, size): K (w - s) - u (barrier - s') / (t (1 + `|u|^2`)).

        s and s' are the second-order terms of the two equations, clipped at `limit` times `goal`. The barrier
        is `target` times `goal`.
        """
        most = limit * self.goal
        along, curve = self._curve()
        turn = self.dt * self.du
        length = np.linalg.norm(turn, axis=1, keepdims=True)
        turn = turn * np.divide(most, length, out=np.ones_like(length), where=length > most)
        self._target = target * self.goal - np.clip(-2 * self.dt * along - self.t * curve, -most, most)
        self._aim = self._times(w - turn) - self.u * (self._target / (self.t * (2 - self._slack)))
        return self._aim

    def _curve(self) -> tuple[Floats, Floats]:
        """Return u'du and the second-order decrease of 1 - `|u|^2` along du, (G, 1) each.

        The square of the component of du tangential to the sphere has the factor 1 - `|u|^2`, because
        `advance` turns u along the sphere.
        """
        along, slack = _dot(self.u, self.du), self._slack
        radial = along**2 / np.maximum(1 - slack, TINY)
        return along, radial + slack * np.maximum(_dot(self.du, self.du) - radial, 0.0)

    def follow(self, dw: Floats) -> None:
        """Set du = K dw + k for a change dw of the coefficients, and the change dt of t.

        dt solves the linearised equation t (1 - `|u|^2`) = barrier.
        """
        self.du = self._times(dw) + self._aim
        self.dt = (self._target + 2 * self.t * _dot(self.u, self.du)) / self._slack - self.t

    def advance(self, step: float, keep: float) -> None:
        """Move the dual variables u and t by `step` times their changes du and dt.

        The new u is parallel to u + step du. Its length is limited: the slack 1 - `|u|^2` keeps at least the
        share `keep` of its old value.
        """
        along, curve = self._curve()
        left = np.clip(self._slack - 2 * step * along - step**2 * curve, keep * self._slack, 1.0)
        turned = self.u + step * self.du
        length = np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), LEAST)
        self._set(turned * np.minimum(np.sqrt(1 - left) / length, 1.0))
        self.t = np.maximum(self.t + step * self.dt, keep * self.t)

    @staticmethod
    def nearest(u: Floats) -> Floats:
        """Return the projection of each u on the unit ball, u / max(||u||, 1)."""
        return np.asarray(u / np.maximum(np.linalg.norm(u, axis=1, keepdims=True), 1.0))

    @property
    def products(self) -> Floats:
        """The products t (1 - `|u|^2`), (G,)."""
        return (self.t * self._slack)[:, 0]


class MaxNorms(GroupNorms):
    """l-infinity norms of groups of coefficients.

    Each group w_g of `size` coefficients has dual variables u = a - b with a, b >= 0 and the equations sum a
    + b = 1 and a_j (t - w_j) = b_j (t + w_j) = barrier / (2 size). The variables are t, (G, 1), `shares` with
    a and b, and `distances` with t - w and t + w, each (2, G, size).
    """

    def start(self, w: Floats, barrier: Floats) -> None:
        """Set all variables to the central path at w.

        With e = barrier / (2 size), t solves sum_j e / (t - w_j) + e / (t + w_j) = 1. It is found by
        bisection.
        """
        most, each = np.abs(w).max(axis=1, keepdims=True), barrier / (2 * w.shape[1])
        below = most - SIGNS * w
        low, high = np.log(each), np.log(barrier)  # of t - most
        for _ in range(60):
            middle = 0.5 * (low + high)
            is_low = _total(each / (np.exp(middle) + below)) > 1
            low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        above = np.exp(0.5 * (low + high))
        self.t, self.distances = most + above, above + below
        self._set(each / self.distances)
        self.d_shares, self.d_distances, self.du = (
            np.zeros_like(below),
            np.zeros_like(below),
            np.zeros_like(w),
        )

    def _set(self, shares: Floats) -> None:
        """Set a and b, and the dual variables u = a - b.

        If sum a + b exceeds 1 in a group, a and b of this group are divided by the sum.
        """
        self.shares = shares / np.maximum(_total(shares), 1.0)
        self.u = self.shares[0] - self.shares[1]

    def curvature(self) -> Floats:
        """Return the matrix K of the step du = K dw + k, (G, size, size).

        K = diag(p + q) - (p - q)(p - q)' / sum (p + q) with p = a / (t - w) and q = b / (t + w); the class
        docstring explains a, b and t.
        """
        p, q = self.shares / self.distances
        v, total = p - q, (p + q).sum(axis=1)[:, None, None]
        K: Floats = -v[:, :, None] * v[:, None, :] / total
        diagonal = np.arange(K.shape[1])
        K[:, diagonal, diagonal] += p + q
        return K

    def right_hand_side(self, w: Floats, target: float, limit: float) -> Floats:
        """Return the vector k of the step du = K dw + k, (G, size): the step du for dw = 0.

        k leads to the target barrier (`GroupNorms`). It also corrects the errors in t - w and t + w, which
        arise because the variables move by different step lengths.
        """
        each, most = (number * self.goal / (2 * w.shape[1]) for number in (target, limit))
        self._lack = self.t - SIGNS * w - self.distances
        second = np.clip(self.d_shares * self.d_distances, -most, most) + self.shares * self._lack
        self._aim = (each - second) / self.distances - self.shares
        self.follow(np.zeros_like(w))
        return self.du

    def follow(self, dw: Floats) -> None:
        """Set the directions of all variables for the change dw of w.

        The change dt of t keeps sum a + b = 1 after a full step.
        """
        rates = self.shares / self.distances
        missing = 1 - _total(self.shares)
        self.dt = (_total(self._aim + SIGNS * rates * dw) - missing) / _total(rates)
        change = self.dt - SIGNS * dw
        self.d_shares, self.d_distances = self._aim - rates * change, change + self._lack
        self.du = self.d_shares[0] - self.d_shares[1]

    def advance(self, step: float, keep: float) -> None:
        """Move all variables along their directions.

        Each entry of a, b, t - w and t + w keeps at least the share `keep` of its value.
        """
        self._set(np.maximum(self.shares + step * self.d_shares, keep * self.shares))
        self.t = self.t + step * self.dt
        self.distances = np.maximum(self.distances + step * self.d_distances, keep * self.distances)

    @staticmethod
    def nearest(u: Floats) -> Floats:
        """Return the projection of each u on the unit ball of the l1 norm."""
        return np.stack([project_l1_ball(one, 1.0) for one in u])

    @property
    def products(self) -> Floats:
        """The sum of a_j (t - w_j) + b_j (t + w_j) over each group, (G,)."""
        return np.asarray(_total(self.shares * self.distances)[:, 0])


def _total(x: Floats) -> Floats:
    """Return the sum over a and b of each group, (G, 1); x, (2, G, size), holds both."""
    return np.asarray(x.sum(axis=(0, 2))[:, None])


def _dot(x: Floats, y: Floats) -> Floats:
    """Return x'y of each group, (G, 1)."""
    return np.einsum("gk,gk->g", x, y)[:, None]


class NormDuals:
    """The dual variables of all norms of a problem.

    At first they are on the central path at w with the given barrier. The symbols are those of the module.

    Parameters
    ----------
    penalty
        The regularizer.
    w
        (d,): the coefficients.
    barrier
        The barrier parameter, on the scale of a margin (`Tuning`).
    """

    def __init__(self, penalty: Penalty, w: Floats, barrier: float) -> None:
        self._penalty, self._d = penalty, len(w)
        self._kinds = list[EuclideanNorms | MaxNorms]()
        for n in penalty.norms:
            if n.matrix is None:
                goal = 1 / np.sqrt(penalty.squares[n.groups].mean(axis=1))
            else:
                goal = np.sqrt((n.matrix.power(2) @ (1 / penalty.squares))[n.groups].mean(axis=1))
            kind = (EuclideanNorms if n.order == 2 else MaxNorms)(n, np.maximum(goal, LEAST))
            kind.start(n.of(w), barrier * kind.goal)
            self._kinds.append(kind)
        self.unit = float(sum(each.omega @ each.goal[:, 0] for each in self._kinds))

    def _spread(self, values: Sequence[Floats]) -> Floats:
        """Return the sum over all norms of A' omega x, (d,).

        `values` has one array x, (G, size), per norm. Without a linear map, entry j of the result is a sum
        over the groups that contain coefficient j.
        """
        out = np.zeros(self._d)
        for each, x in zip(self._kinds, values, strict=True):
            groups, matrix = each.norms.groups, each.norms.matrix
            z = out if matrix is None else np.zeros(matrix.shape[0])
            z[groups] += each.omega[:, None] * x
            if matrix is not None:
                out += matrix.T @ z
        return out

    @property
    def gradient(self) -> Floats:
        """The gradient of the norms, (d,): the sum over all groups of group weight x u.

        u are the dual variables of the group. The group weight is called omega in this module.
        """
        return self._spread([each.u for each in self._kinds])

    @property
    def next_gradient(self) -> Floats:
        """The gradient of the norms after a full step, (d,).

        It is the sum over all groups of group weight x (u + du).
        """
        return self._spread([each.u + each.du for each in self._kinds])

    @property
    def products(self) -> float:
        """The part of the duality gap that is due to the norms.

        It is the sum over all groups of omega times `GroupNorms.products`. On the central path at barrier 1
        it is `unit`, the sum of omega times `GroupNorms.goal`.
        """
        return float(sum(each.omega @ each.products for each in self._kinds))

    def add_to(self, gram: Floats) -> None:
        """Add A' omega K A of all groups, and Q, to the Newton matrix, whose first d unknowns are w."""
        d = self._d
        if self._penalty.quadratic is not None:
            gram[:d, :d] += self._penalty.quadratic
        for each in self._kinds:
            groups, matrix = each.norms.groups, each.norms.matrix
            rows, columns = np.broadcast_arrays(groups[:, :, None], groups[:, None, :])
            values = each.omega[:, None, None] * each.curvature()
            if matrix is None:
                gram[rows, columns] += values
            else:
                size = (matrix.shape[0],) * 2
                inner = sp.coo_array((values.ravel(), (rows.ravel(), columns.ravel())), shape=size).tocsr()
                gram[:d, :d] += (matrix.T @ inner @ matrix).toarray()

    def right_hand_side(self, w: Floats, target: float = 0.0, limit: float = 0.0) -> Floats:
        """Return the part of the norms in the right-hand side, sum A' omega k, (d,).

        The sum is over all groups, and k is the vector of du = K dw + k (`GroupNorms.right_hand_side`).
        """
        return self._spread([each.right_hand_side(each.norms.of(w), target, limit) for each in self._kinds])

    def follow(self, dw: Floats) -> None:
        """Set the direction of all dual variables for the change dw of w, (d,)."""
        for each in self._kinds:
            each.follow(each.norms.of(dw))

    def advance(self, step: float, keep: float) -> None:
        """Move all dual variables along their direction (see `GroupNorms`)."""
        for each in self._kinds:
            each.advance(step, keep)

    def feasible_gradient(self, g: Floats) -> Floats:
        """Return a gradient of the norms, (d,), that makes the gradient in w, g + sum omega u, small.

        g = X'c, (d,), is the part of the rows; omega u is weight times dual variables, summed over all
        groups. The dual variables u are feasible and near the current ones, which are not changed.
        """
        gradient = self.gradient
        for each in self._kinds:
            if each.norms.matrix is None and self._penalty.quadratic is None:
                groups, omega = each.norms.groups, each.omega[:, None]
                rest = (g + gradient)[groups] / omega
                gradient[groups] += omega * (each.nearest(each.u - rest) - each.u)
        return gradient


@dataclass(frozen=True, eq=False)
class Penalty:
    """The regularizer in sum form, n Omega(w) = (lam/2) ||w||^2 + (1/2) w'Q w + a sum of norms.

    Attributes
    ----------
    lam
        n mu, where mu is the weight of the squared l2 norm.
    norms
        The norms; their weights are n times those of the mean form.
    squares
        (d,): the mean square of each column of X. Let m be the mean of these numbers over a group. Then
        coefficients of the group with Euclidean length 1 / sqrt(m) change the scores by about 1; this length
        is the group's `goal`.
    auxiliary
        Whether lam is an auxiliary ridge, not part of the problem, and every coefficient is in a group.
    quadratic
        (d, d): n Q; None for 0.
    """

    lam: float
    norms: tuple[Norms, ...] = ()
    squares: Floats = field(default_factory=lambda: np.zeros(0))
    auxiliary: bool = False
    quadratic: Floats | None = None

    def times(self, w: Floats) -> Floats:
        """Return (lam I + n Q) w, (d,)."""
        return self.lam * w + (0.0 if self.quadratic is None else self.quadratic @ w)

    def value(self, w: Floats) -> float:
        """Return n Omega(w)."""
        return float(0.5 * (w @ self.times(w)) + sum(n.weights @ n.lengths(n.of(w)) for n in self.norms))

    @cached_property
    def _factor(self) -> Any:
        """The Cholesky factor of lam I + n Q."""
        assert self.quadratic is not None
        return cho_factor(self.lam * np.eye(len(self.squares)) + self.quadratic)

    def conjugate(self, g: Floats, excess: float, bound: float) -> float:
        """Return the amount by which the vector g lowers the dual bound in sum form.

        g = X'c + sum A' omega u, (d,), is the sum of the gradients of the rows and of the norms, and `bound`
        is the dual bound without this amount. The amount is half of g' (lam I + n Q)^-1 g. With an auxiliary
        ridge it is rho `|bound|`, where rho is the largest (dual norm of g in a group) / (weight omega of the
        group). For dividing all dual variables by 1 + rho makes them feasible, and this lowers the bound by
        at most rho `|bound|`. To make the sum `excess` of the weighted duals 0, they must change, and g_j
        with them, by about excess times a typical entry of column j.
        """
        if self.quadratic is not None:
            return 0.5 * float(g @ cho_solve(self._factor, g))
        if not self.auxiliary:
            return float(g @ g) / (2 * self.lam)
        g = np.abs(g) + abs(excess) * np.sqrt(self.squares)
        sizes = (n.lengths(g[n.groups], dual=True) / n.weights for n in self.norms if n.matrix is None)
        return float(max(size.max() for size in sizes)) * abs(bound)
