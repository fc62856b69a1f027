"""The constants of the engine and what they are measured in; `benchmarks/ablation.py` tells what devices are worth."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """How boldly the engine steps, when it gives up, and which rows it looks at.

    Attributes
    ----------
    cold
        Barrier at a start from nothing: the scale of a margin.
    share
        Share of the weight that a step may leave behind; with 0 every step is the common one.
    keep, curved_keep
        Of a row's distance to its bound that a bold step must leave, and the same where phi* is curved, which
        makes Newton's direction better.
    safe_keep
        The same for the common step, which all rows allow.
    side_barrier
        Barrier of nu sigma against that of u p, per factor times weight of a term.
    second_order
        Bound on second-order terms of a bold step, in units of the mean product.
    patience, safe_patience
        Iterations without halving the gap before the common step takes over, and before it gives up.
    restart
        Barrier with which the common step takes over.
    halvings
        Of a step that makes a smooth problem worse.
    vanished
        Share of the first objective below which the optimum is 0 and no relative accuracy can be had.
    max_iterations
        Of a solve.
    deadline
        When a solve has to stop (`nerm.solvers.clock`), looked at once an iteration.
    fewest
        Rows below which all of them are as quick as some; infinity never condenses.
    settling
        Mean move of the scores from which on rows are condensed.
    further
        The same on few rows, as a share of the error that was expected there: fewer still serve; 0 never does
        it.
    falling
        Ratio of two moves of the scores below which they are getting shorter, not only starting short.
    miss_per_move, miss_per_barrier
        Mean error of the scores after a move of them, and after the move before; near a neighbour, per
        barrier as well, which smooths them that much.
    reach
        Rows within so many mean errors of a kink are kept.
    most
        Share of the rows above which a smaller problem does not pay.
    rounds, warm_rounds
        On few rows before all are taken, from nothing and near a neighbour.
    wider, many
        The expected error grows so much where all rows disagree with an answer, unless it already had this
        share of them.
    surprise
        A first direction so many times longer than the expected error says that this was wrong.
    slack
        Of the tolerance, for the small problem; the rest is for rows that cross a kink after all.
    barrier_range, least_warm_barrier, barrier_per_miss
        Barrier at a start from a hypothesis: per mean error of the scores that is expected there, within a
        range, which begins lower where multipliers of a neighbour are known.
    give
        Per expected error of the scores: how far from a kink they do not yet move the multipliers of a
        neighbour.
    least_miss, first_miss
        Mean error of the scores that is expected of any guess, and of the first.
    farthest
        The change of a log weight beyond which the last solution is no neighbour.
    extrapolates
        Whether a guess is the straight line through the last two solutions, where that is better than the
        last.
    stretch, stretch_rows
        Points of a path that are worth a cold start on a core of their own; below so many rows two stretches
        wait for each other's Python, and above so many the memory of a further one is not worth it.
    """

    cold: float = 1.0
    share: float = 0.03
    keep: float = 0.2
    curved_keep: float = 0.1
    safe_keep: float = 0.005
    side_barrier: float = 0.1
    second_order: float = 10.0
    patience: int = 6
    safe_patience: int = 20
    restart: float = 0.1
    halvings: int = 6
    vanished: float = 1e-100
    max_iterations: int = 200
    deadline: float = float("inf")
    fewest: float = 2000
    settling: float = 0.1
    further: float = 0.5
    falling: float = 0.5
    miss_per_move: tuple[float, float] = (0.3, 0.03)
    miss_per_barrier: float = 0.7
    reach: float = 6.0
    most: float = 0.7
    rounds: int = 4
    warm_rounds: int = 6
    wider: float = 3.0
    many: float = 0.3
    surprise: float = 3.0
    slack: float = 0.8
    barrier_range: tuple[float, float] = (0.005, 0.1)
    least_warm_barrier: float = 1e-5
    barrier_per_miss: float = 0.7
    give: float = 3.0
    least_miss: float = 1e-4
    first_miss: float = 0.1
    farthest: float = 1.5
    extrapolates: bool = True
    stretch: int = 8
    stretch_rows: tuple[int, int] = (10_000, 500_000)
