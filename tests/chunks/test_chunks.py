"""A fit on chunks is the fit in memory: same optimum, certified on all rows, whatever the source of the chunks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm.chunks import save_chunk

N = 3000


def draw(n=N, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    if sparse:
        index = rng.integers(0, 5, size=(n, 4)) + 5 * np.arange(4)
        X = sp.csr_matrix((np.ones(4 * n), index.ravel(), np.arange(0, 4 * n + 1, 4)), shape=(n, 20))
        Z = X.toarray()
    else:
        X = Z = rng.normal(size=(n, 4))
    w = rng.normal(size=Z.shape[1])
    y = np.where(Z @ w + rng.logistic(size=n) > np.median(Z @ w), 1.0, -1.0)
    v = np.where(Z @ (w + rng.normal(size=len(w))) + rng.logistic(size=n) > 0.5, 1.0, -1.0)
    return X, y, v


def pieces(*arrays, parts=5):
    def read():
        for rows in np.array_split(np.arange(len(arrays[1])), parts):
            yield tuple(array[rows] for array in arrays)

    return read


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Draw a small sample, and keep few rows: thousands are many."""
    monkeypatch.setattr("nerm.chunks.source.SAMPLE_ROWS", 400)


OBJECTIVES = {
    "hinge": nerm.Risk(nerm.Hinge()) + 0.01 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge()),
    "plain": nerm.Risk(nerm.Hinge()) + 0.01 * nerm.SquaredL2(),
    "one side": nerm.Risk(nerm.Hinge())
    + 0.01 * nerm.SquaredL2()
    + 0.5 * nerm.Neutrality(nerm.Hinge(), side="agreement"),
    "identity": nerm.Risk(nerm.Hinge()) + 0.01 * nerm.SquaredL2() + 0.3 * nerm.Neutrality(nerm.Identity()),
    "balanced": nerm.Risk(nerm.Hinge())
    + 0.01 * nerm.SquaredL2()
    + 1.0 * nerm.Neutrality(nerm.Hinge(), weights="balanced"),
    "opportunity": nerm.Risk(nerm.Hinge())
    + 0.01 * nerm.L1()
    + 1.0 * nerm.Neutrality(nerm.Hinge(), weights="equal_opportunity"),
    "elastic net": nerm.Risk(nerm.Hinge())
    + 0.01 * nerm.ElasticNet(0.5)
    + 1.0 * nerm.Neutrality(nerm.Hinge()),
    "huge eta": nerm.Risk(nerm.Hinge()) + 0.01 * nerm.SquaredL2() + 1e4 * nerm.Neutrality(nerm.Hinge()),
    "logistic": nerm.Risk(nerm.Logistic()) + 0.01 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Logistic()),
    "logistic, one side": nerm.Risk(nerm.Logistic())
    + 0.01 * nerm.SquaredL2()
    + 1.0 * nerm.Neutrality(nerm.Logistic(), side="agreement", weights="balanced"),
    "logistic, l1": nerm.Risk(nerm.Logistic()) + 0.01 * nerm.L1() + 1.0 * nerm.Neutrality(nerm.Logistic()),
    "logistic, identity": nerm.Risk(nerm.Logistic())
    + 0.01 * nerm.SquaredL2()
    + 0.2 * nerm.Neutrality(nerm.Identity()),
    "squared hinge": nerm.Risk(nerm.SquaredHinge())
    + 0.01 * nerm.SquaredL2()
    + 1.0 * nerm.Neutrality(nerm.SquaredHinge()),
}


@pytest.mark.parametrize(
    ("name", "sparse"), [*((name, False) for name in OBJECTIVES), ("hinge", True), ("logistic", True)]
)
def test_same_optimum_as_in_memory(name, sparse):
    X, y, v = draw(sparse=sparse)
    tol = 1e-5
    apart = OBJECTIVES[name].on(nerm.Chunks(pieces(X, y, v))).solve(tol=tol)
    whole = OBJECTIVES[name].on(X, y, viewpoint=v)
    assert apart.status == "optimal"
    in_memory = whole.solve(tol=1e-8)
    assert apart.objective.total == pytest.approx(whole.evaluate(apart.coef, apart.intercept).total, rel=1e-9)
    assert apart.certificate.dual <= in_memory.objective.total * (1 + 1e-9)
    assert apart.objective.total <= in_memory.objective.total * (1 + 2 * tol)


def test_bound_holds_at_any_hypothesis():
    X, y, v = draw()
    for name in ("hinge", "logistic", "opportunity"):
        problem, best = (
            OBJECTIVES[name].on(nerm.Chunks(pieces(X, y, v))),
            OBJECTIVES[name].on(X, y, viewpoint=v).solve(),
        )
        rng = np.random.default_rng(1)
        for _ in range(3):
            w, b = rng.normal(size=4), float(rng.normal())
            certificate = problem.certify(w, b)
            assert certificate.dual <= best.objective.total * (1 + 1e-9)
            assert certificate.primal == pytest.approx(
                OBJECTIVES[name].on(X, y, viewpoint=v).evaluate(w, b).total
            )


@pytest.mark.long
def test_sources_agree(tmp_path):
    X, y, v = draw(sparse=True)
    s = np.random.default_rng(3).uniform(0.5, 2, len(y))
    objective = OBJECTIVES["balanced"]
    found = [objective.on(nerm.Chunks({"X": X, "y": y, "viewpoint": v, "sample_weight": s})).solve()]
    paths = []
    for i, rows in enumerate(np.array_split(np.arange(len(y)), 4)):
        paths.append(str(tmp_path / f"{i}.npz"))
        save_chunk(paths[-1], X[rows], y[rows], v[rows], s[rows])
    found.append(objective.on(nerm.Chunks(paths)).solve())
    da = pytest.importorskip("dask.array")
    lazy = [da.from_array(a, chunks=c) for a, c in ((X.toarray(), (700, 7)), (y, 500), (v, 900), (s, 1100))]
    found.append(objective.on(lazy[0], lazy[1], viewpoint=lazy[2], sample_weight=lazy[3]).solve())
    whole = objective.on(X, y, viewpoint=v, sample_weight=s).solve(tol=1e-8)
    for one in found:
        assert one.status == "optimal"
        assert one.objective.total == pytest.approx(whole.objective.total, rel=3e-6)


def test_progress_shows_every_pass(capsys):
    X, y, v = draw()
    chunks = nerm.Chunks((X, y, v), memory=600_000, progress=True)
    OBJECTIVES["hinge"].on(chunks).solve()
    assert chunks.passes > 1


def test_memory_mapped_arrays(tmp_path):
    X, y, v = draw()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    chunks = nerm.Chunks((mapped, y, v), memory=600_000)
    assert len(list(chunks.read())) > 3
    assert OBJECTIVES["hinge"].on(chunks).solve().status == "optimal"


def test_tables_become_features_in_the_first_pass(tmp_path):
    pd = pytest.importorskip("pandas")
    rng, n = np.random.default_rng(0), 1200
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n), "job": rng.choice(["a", "b", "c"], n), "sex": rng.choice(["f", "m"], n),
            "weight": rng.uniform(1, 2, n).round(3),
        }
    )  # fmt: skip
    frame.loc[n - 1, "job"] = "rare"
    frame["good"] = np.where(
        frame["age"] + 10 * (frame["job"] == "a") + rng.normal(size=n) * 9 > 45, "ja", "nein"
    )
    frame.loc[3, "good"] = "?"  # nobody knows
    paths = [str(tmp_path / f"{i}.csv") for i in range(3)]
    for path, rows in zip(paths, np.array_split(np.arange(n), 3), strict=True):
        frame.iloc[rows].to_csv(path, index=False)
    chunks = nerm.Chunks(paths, target="good", viewpoint="sex", sample_weight="weight")
    found = OBJECTIVES["balanced"].on(chunks).solve()
    known = frame.drop(index=3)
    jobs = known["job"].to_numpy()[:, None] == np.array(["a", "b", "c", "rare"])
    # any scaling of age is learned from the sample: take theirs
    numeric = chunks.features.recipe.columns[0]
    X = np.column_stack([(known["age"] - numeric.mean) / numeric.scale, jobs])
    y, v = np.where(known["good"] == "ja", 1.0, -1.0), np.where(known["sex"] == "m", 1.0, -1.0)
    whole = OBJECTIVES["balanced"].on(X, y, viewpoint=v, sample_weight=known["weight"]).solve(tol=1e-8)
    assert found.problem.classes.tolist() == ["nein", "ja"]
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(whole.objective.total, rel=3e-6)


def test_several_viewpoints_and_words():
    X, y, v = draw()
    other = np.where(X[:, 1] > 0, 1.0, -1.0)
    objective = (
        nerm.Risk(nerm.Hinge()) + 0.01 * nerm.SquaredL2()
        + nerm.Neutrality(nerm.Hinge(), to="a") + nerm.Neutrality(nerm.Hinge(), to="b", weights="balanced")
    )  # fmt: skip
    words = np.where(y > 0, "yes", "no")

    def read():
        for rows in np.array_split(np.arange(len(y)), 3):
            yield {"X": X[rows], "y": words[rows], "viewpoint": {"a": v[rows], "b": other[rows]}}

    found = objective.on(nerm.Chunks(read)).solve()
    whole = objective.on(X, words, viewpoint={"a": v, "b": other}).solve(tol=1e-8)
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(whole.objective.total, rel=3e-6)
    assert found.predict(X[:5]).tolist() == whole.predict(X[:5]).tolist()


@pytest.mark.long
def test_path_goes_from_one_to_the_next():
    X, y, v = draw()
    problem = OBJECTIVES["hinge"].on(nerm.Chunks(pieces(X, y, v)))
    etas = [0.0, 0.3, 1.0]
    whole = OBJECTIVES["hinge"].on(X, y, viewpoint=v).path(etas, tol=1e-8)
    for one, other in zip(problem.path(etas), whole, strict=True):
        assert one.status == "optimal"
        assert one.objective.total == pytest.approx(other.objective.total, rel=3e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("plain", "calders_verwer_score"),
        ("logistic", "neutrality_risk"),
        ("logistic", "equalized_odds_difference"),
        ("logistic", "normalized_prejudice_index"),
    ],
)
def test_neutralize_is_within_the_limit_on_all_rows(name, measure):
    X, y, v = draw()
    problem = OBJECTIVES[name].on(nerm.Chunks(pieces(X, y, v)))
    found = problem.neutralize(0.03, measure, tol=1e-5)
    scores = X @ found.solution.coef + found.solution.intercept
    function = getattr(nerm.metrics, measure)
    measured = function(y, scores, v) if "odds" in measure else function(scores, v)
    assert abs(measured) <= 0.03
    assert abs(measured) == pytest.approx(abs(found.value), abs=1e-12)
    assert found.reached
    assert set(found.trace["status"]) == {"optimal"}
    assert 0.05 < np.mean(scores > 0) < 0.95


@pytest.mark.long
def test_neutralize_says_what_is_possible():
    X, y, _ = draw()
    with pytest.raises(nerm.NotNeutralError, match="No non-constant model satisfies"):
        OBJECTIVES["plain"].on(nerm.Chunks(pieces(X, y, y))).neutralize(0.001)
    with pytest.raises(nerm.InvalidInputError, match="a measure on chunks must be one of"):
        OBJECTIVES["plain"].on(nerm.Chunks(pieces(X, y, y))).neutralize(0.1, lambda y, f, v: 0.0)


def test_order_and_size_of_chunks_leave_the_optimum():
    X, y, v = draw()
    values = []
    for order, parts in ((slice(None), 2), (slice(None, None, -1), 7)):
        solution = (
            OBJECTIVES["logistic"].on(nerm.Chunks(pieces(X[order], y[order], v[order], parts=parts))).solve()
        )
        values.append(solution.objective.total)
    assert values[0] == pytest.approx(values[1], rel=2e-6)


def test_a_fit_goes_on_from_a_start():
    X, y, v = draw()
    problem = OBJECTIVES["hinge"].on(nerm.Chunks(pieces(X, y, v)))
    first = problem.solve(tol=1e-7, max_passes=1)
    assert first.status == "inaccurate"
    second = problem.solve(tol=1e-7, start=(first.coef, first.intercept))
    assert second.status == "optimal"
    assert second.objective.total <= first.objective.total


def test_checkpoint_goes_on_where_it_stood(tmp_path):
    X, y, v = draw()
    path, seen = tmp_path / "fit.npz", []

    def read():
        seen.append(1)
        yield from pieces(X, y, v)()

    whole = OBJECTIVES["hinge"].on(nerm.Chunks(read)).solve(tol=1e-7)
    passes = whole.stats.details["passes"]
    assert passes >= 2
    first = OBJECTIVES["hinge"].on(nerm.Chunks(read)).solve(tol=1e-7, max_passes=1, checkpoint=path)
    assert first.status == "inaccurate"
    seen.clear()
    second = OBJECTIVES["hinge"].on(nerm.Chunks(read)).solve(tol=1e-7, checkpoint=path)
    assert second.status == "optimal"
    assert len(seen) == 1 + passes - 1  # the first pass counts; one was done before
    assert np.array_equal(second.coef, whole.coef)
    seen.clear()
    assert np.array_equal(
        OBJECTIVES["hinge"].on(nerm.Chunks(read)).solve(tol=1e-7, checkpoint=path).coef, whole.coef
    )
    assert len(seen) == 1  # nothing is left to do
    with pytest.raises(nerm.InvalidInputError, match="a checkpoint must be of the same objective"):
        OBJECTIVES["plain"].on(nerm.Chunks(read)).solve(tol=1e-7, checkpoint=path)
    path.write_bytes(b"nothing")
    with pytest.raises(nerm.InvalidInputError, match="which cannot be read"):
        OBJECTIVES["hinge"].on(nerm.Chunks(read)).solve(tol=1e-7, checkpoint=path)


def test_time_limit_leaves_a_certified_answer():
    X, y, v = draw()
    solution = OBJECTIVES["hinge"].on(nerm.Chunks(pieces(X, y, v))).solve(tol=1e-12, time_limit=1e-9)
    assert solution.status == "time_limit"
    assert np.isfinite(solution.certificate.gap) or solution.certificate.dual == -np.inf
    with pytest.raises(nerm.NotSolvedError):
        OBJECTIVES["hinge"].on(nerm.Chunks(pieces(X, y, v))).solve(tol=1e-12, time_limit=1e-9, strict=True)


def test_classifiers_read_chunks():
    X, y, v = draw()
    s = np.random.default_rng(0).uniform(0.5, 2, len(y))
    words = np.where(v > 0, "f", "m")
    for model in (
        nerm.NeutralSVC(lam=30.0, eta=1.0, class_weight="balanced"),
        nerm.NERMClassifier(loss="logistic", surrogate="logistic", lam=0.01, eta=1.0, weights="balanced"),
    ):
        chunks = nerm.Chunks({"X": X, "y": y, "viewpoint": words, "sample_weight": s})
        apart = model.__class__(**model.get_params()).fit(chunks)
        in_memory = model.fit(X, y, viewpoint=words, sample_weight=s)
        assert apart.certificate_.primal == pytest.approx(in_memory.certificate_.primal, rel=3e-6)
        assert apart.coef_ == pytest.approx(in_memory.coef_, abs=2e-2)
        assert np.mean(apart.predict(X) == in_memory.predict(X)) > 0.99
        assert "yes" not in repr(apart.explain())


def test_classifiers_on_chunks_meet_a_limit():
    X, y, v = draw()
    model = nerm.NERMClassifier(loss="hinge", lam=0.01, limit=0.03, surrogate="hinge").fit(
        nerm.Chunks((X, y, v))
    )
    assert abs(nerm.metrics.calders_verwer_score(model.decision_function(X), v)) <= 0.03
    assert model.eta_ > 0
    assert model.trace_["chosen"].sum() == 1
    with pytest.raises(nerm.InvalidInputError, match="with confidence=None"):
        nerm.NERMClassifier(limit=0.03, confidence=0.9).fit(nerm.Chunks((X, y, v)))
    with pytest.raises(nerm.InvalidInputError, match="must be linear"):
        nerm.NeutralSVC(kernel="rbf").fit(nerm.Chunks((X, y, v)))


def test_classifiers_predict_dask_arrays_lazily():
    da = pytest.importorskip("dask.array")
    X, y, v = draw()
    model = nerm.NeutralSVC(eta=1.0).fit(
        da.from_array(X, chunks=(700, 2)), da.from_array(y, chunks=700), viewpoint=v
    )
    lazy = model.predict(da.from_array(X, chunks=(1000, 4)))
    assert hasattr(lazy, "dask")
    assert np.array_equal(lazy.compute(), model.predict(X))


# --- bad input -------------------------------------------------------------------------------------


def refused(match, source, objective=OBJECTIVES["hinge"], **options):
    with pytest.raises(nerm.InvalidInputError, match=match):
        objective.on(nerm.Chunks(source, **options)).solve()


def test_bad_chunks():
    X, y, v = draw(200)
    nan = X.copy()
    nan[150, 2] = np.nan
    refused("in chunk 3, 'X' must be finite. Got nan at row 30, column 2", pieces(nan, y, v, parts=5))
    refused("'y' must hold exactly two classes. Got a single class", pieces(X, np.ones(200), v))
    refused("in chunk 0, 'y' must have one entry for each of the 200 rows", lambda: [(X, y[:100], v)])
    refused(
        "every chunk must have the columns of chunk 0, 4 columns. Got 2 columns in chunk 1",
        lambda: [(X, y, v), (X[:, :2], y, v)],
    )
    refused("chunk 0 must be", lambda: [X])
    refused("must have at least one row", lambda: [])
    refused("must contain a viewpoint", lambda: [(X, y)])
    refused("must fit into", (X, y, v), memory=100)
    refused("'memory' must be", (X, y, v), memory=-1)
    refused("'source' must be", 3)
    refused("must all end in .npz, or be tables whose target is named. Got 'rows.txt'", ["rows.txt"])
    refused("every file of chunks must exist", ["nowhere.npz"])
    refused("must have at least one chunk", [])
    refused("a dict with A", lambda: [{"A": X}])
    refused("'viewpoint' must have one entry for each of the 200 rows", (X, y, v[:3]))
    with pytest.raises(nerm.InvalidInputError, match="must be linear"):
        OBJECTIVES["hinge"].on(nerm.Chunks((X, y, v)), kernel="rbf")
    with pytest.raises(nerm.InvalidInputError, match="must contain y"):
        OBJECTIVES["hinge"].on(nerm.Chunks((X, y, v)), y)


def test_one_class_in_a_chunk_is_fine():
    X, y, v = draw()
    order = np.argsort(y, kind="stable")
    solution = OBJECTIVES["hinge"].on(nerm.Chunks(pieces(X[order], y[order], v[order]))).solve()
    assert solution.status == "optimal"


def test_what_chunks_cannot_do_is_said():
    X, y, v = draw(200)
    refused(
        "must be convex", (X, y, v), nerm.Risk(nerm.Hinge()) + nerm.SquaredL2() + nerm.Neutrality(nerm.Ramp())
    )
    limited = OBJECTIVES["plain"].subject_to(nerm.Neutrality(nerm.Hinge()) <= 1.1)
    refused("must have no constraints. Got a limit", (X, y, v), limited)
    refused(
        "must be given by name",
        (X, y, v),
        OBJECTIVES["plain"] + nerm.Neutrality(nerm.Hinge(), weights=np.ones(200)),
    )


def test_chunks_that_change_are_noticed():
    X, y, v = draw()
    calls = []

    def read(change):
        calls.append(1)
        parts = list(pieces(X, y, v)())
        if len(calls) > 1:
            parts = change(parts)
        return parts

    def other_values(parts):
        changed = parts[2][0].copy()
        changed[0, 0] += 1
        return [*parts[:2], (changed, *parts[2][1:]), *parts[3:]]

    for change, match in (
        (lambda parts: parts[:-1], "chunks must not change between passes. Got 2400 rows now, 3000 before"),
        (other_values, "chunks must not change between passes. Got other values in chunk 2"),
        (lambda parts: [*parts, parts[0]], "chunk 5 with 600 rows, which was not there"),
    ):
        calls.clear()
        refused(match, lambda change=change: read(change))
