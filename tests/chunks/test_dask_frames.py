"""dask's frames and arrays as chunks, whatever is known of their partitions; predictions that wait to be asked."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from tests.chunks.test_chunks import OBJECTIVES, draw, small  # noqa: F401

pd, da = pytest.importorskip("pandas"), pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe", exc_type=ImportError)  # it refuses an old pyarrow

OBJECTIVE = OBJECTIVES["balanced"]


def census(n=1200, seed=0):
    """Draw a table; the last rows have a word that no other has."""
    rng = np.random.default_rng(seed)
    words = {"job": rng.choice(["a", "b", "c"], n), "sex": rng.choice(["f", "m"], n)}
    frame = pd.DataFrame({"age": rng.integers(20, 70, n), **words})
    frame.loc[n - 3 :, "job"] = "new"
    frame["good"] = np.where(
        frame["age"] + 10 * (frame["job"] == "a") + rng.normal(size=n) * 9 > 45, "ja", "nein"
    )
    return frame


def features(frame, chunks):
    numeric = chunks.features.recipe.columns[0]  # scaled by the mean and deviation of the sample
    jobs = frame["job"].to_numpy()[:, None] == np.array(["a", "b", "c", "new"])
    X = np.column_stack([(frame["age"] - numeric.mean) / numeric.scale, jobs])
    return X, np.where(frame["good"] == "ja", 1.0, -1.0), np.where(frame["sex"] == "m", 1.0, -1.0)


def test_a_frame_is_a_table_whose_last_partition_has_a_new_word():
    frame = census()
    lazy = dd.from_pandas(frame, npartitions=5)
    chunks = nerm.Chunks(lazy, target="good", viewpoint="sex")
    found = OBJECTIVE.on(chunks).solve(tol=1e-5)
    X, y, v = features(frame, chunks)
    whole = OBJECTIVE.on(X, y, viewpoint=v).solve(tol=1e-8)
    assert found.status == "optimal"
    assert found.problem.classes.tolist() == ["nein", "ja"]
    assert found.objective.total == pytest.approx(whole.objective.total, rel=3e-5)


def test_partitions_without_rows_and_unknown_divisions():
    frame = census()
    lazy = dd.from_pandas(frame, npartitions=6).clear_divisions()
    lazy = lazy[(lazy["age"] < 45) | (lazy["job"] != "a")]
    none = lazy[lazy["age"] > 100]
    both = dd.concat([none, lazy, none])
    chunks = nerm.Chunks(both, target="good", viewpoint="sex")
    found = OBJECTIVE.on(chunks).solve(tol=1e-5)
    left = frame[(frame["age"] < 45) | (frame["job"] != "a")]
    X, y, v = features(left, chunks)
    assert chunks.census.n == len(left)
    assert found.objective.total == pytest.approx(
        OBJECTIVE.on(X, y, viewpoint=v).solve().objective.total, rel=3e-5
    )


def test_a_frame_of_numbers_is_a_matrix():
    X, y, v = draw()
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(y=y, v=v), npartitions=4)
    whole = OBJECTIVE.on(X, y, viewpoint=v).solve(tol=1e-8)
    features = frame[list("abcd")]
    for given in (features, features.to_dask_array()):  # of the second dask does not know the rows of a chunk
        found = OBJECTIVE.on(given, frame["y"], viewpoint=frame["v"]).solve(tol=1e-5)
        assert found.objective.total == pytest.approx(whole.objective.total, rel=3e-5)
    model = nerm.NeutralSVC(lam=30.0, eta=1.0).fit(features, frame["y"], viewpoint=frame["v"])
    lazy = model.predict(features)
    assert isinstance(lazy, dd.Series)
    assert np.array_equal(lazy.compute().to_numpy(), model.predict(X))
    assert np.allclose(found.decision_function(features).compute(), found.decision_function(X))
    assert np.array_equal(found.predict(da.from_array(X, chunks=(500, 3))).compute(), found.predict(X))


def test_probabilities_wait_too():
    X, y, v = draw(900)
    model = nerm.NERMClassifier(loss="logistic", surrogate="logistic", eta=0.3).fit(nerm.Chunks((X, y, v)))
    known = model.predict_proba(X)
    assert np.allclose(model.predict_proba(da.from_array(X, chunks=(400, 2))).compute(), known)
    frame = model.predict_proba(dd.from_pandas(pd.DataFrame(X), npartitions=3))
    assert np.allclose(frame.compute(), known)
    assert np.allclose(np.vstack(list(model.predict_proba(nerm.Chunks((X, y, v), memory=200_000)))), known)


def test_tables_are_predicted_by_the_columns_that_were_learned(tmp_path):
    frame = census()
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[rows].to_csv(tmp_path / f"{i}.csv", index=False)
        frame.iloc[rows].to_parquet(tmp_path / f"{i}.parquet")
    roles = {"target": "good", "viewpoint": "sex"}
    found = {}
    for kind in ("csv", "parquet"):
        chunks = nerm.Chunks(sorted(map(str, tmp_path.glob(f"*.{kind}"))), **roles)
        model = nerm.NeutralSVC(lam=12.0, eta=0.5).fit(chunks)
        found[kind] = np.concatenate(list(model.predict(chunks)))
        X, _, _ = features(frame, chunks)
        assert np.array_equal(found[kind], model.predict(X))
    lazy = nerm.Chunks(dd.from_pandas(frame, npartitions=2), **roles)
    assert np.array_equal(np.concatenate(list(model.predict(lazy))), found["parquet"])
    solution = OBJECTIVE.on(chunks).solve(tol=1e-5)
    with pytest.raises(nerm.InvalidInputError, match="must be predicted by a classifier"):
        list(solution.predict(chunks))


def refused(match, *given, **options):
    with pytest.raises(nerm.InvalidInputError, match=match):
        OBJECTIVE.on(*given, **options)


def test_parts_that_do_not_match():
    X, y, v = draw(300)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    series = dd.from_pandas(pd.Series(y), npartitions=2)
    refused(
        r"'y' must have the same partitions as X \(3\). Got 2 partitions", frame, series, viewpoint=series
    )
    refused(r"'y' must have the same partitions as X \(3\). Got ndarray", frame, y, viewpoint=v)
    refused(
        "'y' must have one entry for each of the 300 rows",
        da.from_array(X),
        da.from_array(y[:200]),
        viewpoint=v,
    )
    refused("'viewpoint' must have one entry", da.from_array(X), da.from_array(y), viewpoint=v[:7])
    with pytest.raises(nerm.InvalidInputError, match="must come with the name of its target"):
        nerm.Chunks(frame)
    with pytest.raises(nerm.InvalidInputError, match="income"):
        OBJECTIVE.on(nerm.Chunks(frame, target="income"))
    bad = X.copy()
    bad[250, 1] = np.inf
    named = "in partition 2, 'X' must be finite. Got inf at row 50, column 1"
    refused(named, da.from_array(bad, chunks=(100, 4)), y, viewpoint=v)


def test_a_column_may_have_any_name():
    X, y, v = draw(200)
    frame = pd.DataFrame(X, columns=["dask", "sweep", "read", "columns"])
    assert OBJECTIVE.on(frame, y, viewpoint=v).solve().status == "optimal"
    assert nerm.NeutralSVC().fit(frame, y).predict(frame).shape == (200,)
