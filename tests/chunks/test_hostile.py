"""Bad chunks are refused in one sentence that names the chunk; unusual chunks are read correctly."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm.chunks import ChunkedProblem, save_chunk
from tests.chunks.test_chunks import OBJECTIVES, draw, pieces, refused, small  # noqa: F401

OBJECTIVE = OBJECTIVES["hinge"]


def solved(source, **options):
    return OBJECTIVE.on(nerm.Chunks(source, **options)).solve(tol=1e-5)


def same_as_in_memory(found, X, y, v):
    whole = OBJECTIVE.on(X, y, viewpoint=v).solve(tol=1e-8)
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(whole.objective.total, rel=3e-5)


def chunk_7(change):
    X, y, v = draw(100)
    parts = [list(part) for part in pieces(X, y, v, parts=10)()]
    parts[7] = change(*parts[7])
    return lambda: parts


def with_nan(values):
    values = values.copy()
    values[3] = np.nan
    return values


def test_the_chunk_is_named():
    refused(
        "in chunk 7, 'X' must be finite. Got nan at row 3, column 0",
        chunk_7(lambda X, y, v: (with_nan(X), y, v)),
    )
    refused("in chunk 7, 'viewpoint' must be finite. Got nan", chunk_7(lambda X, y, v: (X, y, with_nan(v))))
    refused("in chunk 7, 'y' must be finite. Got nan", chunk_7(lambda X, y, v: (X, with_nan(y), v)))
    weights = {"sample_weight": -np.ones(10)}
    refused(
        "in chunk 7, 'sample_weight' must",
        chunk_7(lambda X, y, v: {"X": X, "y": y, "viewpoint": v, **weights}),
    )
    missing = np.array([None, *["a"] * 9], dtype=object)
    refused("in chunk 7, 'viewpoint' must not be missing", chunk_7(lambda X, y, v: (X, y, missing)))
    mixed = np.array(["a", 1] * 5, dtype=object)
    refused("in chunk 7, 'y' must hold values of one type", chunk_7(lambda X, y, v: (X, mixed, v)))
    refused("labels: words in chunk 7", chunk_7(lambda X, y, v: (X, np.where(y > 0, "yes", "no"), v)))
    refused("viewpoint: words in chunk 7", chunk_7(lambda X, y, v: (X, y, np.where(v > 0, "yes", "no"))))
    refused(
        "in chunk 7, 'y' must hold at most two classes. Got 10 classes",
        chunk_7(lambda X, y, v: (X, X[:, 0], v)),
    )
    refused(
        "to chunk 7, 'y' must hold at most two classes. Got 3 classes",
        chunk_7(lambda X, y, v: (X, 0 * y, v)),
    )
    refused("Got 3 columns in chunk 7", chunk_7(lambda X, y, v: (X[:, :3], y, v)))
    refused("Got a sparse matrix in chunk 7", chunk_7(lambda X, y, v: (sp.csr_matrix(X), y, v)))
    refused("the viewpoints of chunk 0, viewpoint. Got none in chunk 7", chunk_7(lambda X, y, v: (X, y)))
    refused("Got sex in chunk 7", chunk_7(lambda X, y, v: {"X": X, "y": y, "viewpoint": {"sex": v}}))
    refused("chunk 7 must be", chunk_7(lambda X, y, v: "words"))


def test_columns_of_other_names_are_other_columns():
    pd = pytest.importorskip("pandas")
    X, y, v = draw(200)
    first, second = pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(X, columns=list("abdc"))
    refused("in chunk 1", lambda: [(first, y, v), (second.rename(columns={"c": "e"}), y, v)])
    refused("every chunk must have the columns of chunk 0", lambda: [(first, y, v), (second, y, v)])
    same_as_in_memory(solved(lambda: [(first[:90], y[:90], v[:90]), (first[90:], y[90:], v[90:])]), X, y, v)


def test_a_source_that_cannot_be_read_twice():
    X, y, v = draw(300)
    refused("Pass the function that makes it", pieces(X, y, v)())
    once = pieces(X, y, v)()
    refused("chunks must not change between passes. Got 0 rows now, 300 before", lambda: once)
    refused("must return an iterator over chunks. Got int", lambda: 3)
    refused("'source' must be", [X, y, v])
    refused("with a matrix X", (y, y, v))


@pytest.mark.long
def test_chunks_without_rows_and_of_one_row():
    X, y, v = draw(500)

    def read():
        yield X[:0], y[:0], v[:0]
        yield X[:1], y[:1], v[:1]
        yield X[1:], y[1:], v[1:]
        yield X[:0], y[:0], v[:0]

    same_as_in_memory(solved(read), X, y, v)
    single = [(X[i : i + 1], y[i : i + 1], v[i : i + 1]) for i in range(500)]
    same_as_in_memory(solved(lambda: single), X, y, v)


def test_types_of_numbers():
    X, y, v = draw(600)
    whole = np.round(8 * X)
    for X_type, y_type in (("f4", "i1"), ("i8", "f4"), ("i2", "?")):
        given = whole.astype(X_type)
        same_as_in_memory(solved(pieces(given, (y > 0).astype(y_type), v.astype("i8"))), whole, y, v)


@pytest.mark.long
def test_real_viewpoint_in_small_chunks_is_counted_by_sign():
    X, y, _ = draw(2000)
    v = X[:, 0] + X[:, 1]
    chunks = nerm.Chunks(pieces(X, y, v, parts=100))
    assert len(chunks.census.counts["viewpoint"]) <= 4
    objective = OBJECTIVES["balanced"]
    whole = objective.on(X, y, viewpoint=v).solve(tol=1e-8)
    assert objective.on(chunks).solve(tol=1e-5).objective.total == pytest.approx(
        whole.objective.total, rel=3e-5
    )


def test_classifiers_read_groups_as_in_memory():
    X, y, _ = draw(900)
    rng = np.random.default_rng(0)
    three = rng.integers(0, 3, 900)
    for v in (three, np.array(["a", "b", "c"])[three], three - 1.0, three > 0, three * 0.5 - 0.3):
        apart = nerm.NeutralSVC(lam=9.0, eta=1.0).fit(nerm.Chunks(pieces(X, y, v)))
        in_memory = nerm.NeutralSVC(lam=9.0, eta=1.0).fit(X, y, viewpoint=v)
        assert apart.certificate_.primal == pytest.approx(in_memory.certificate_.primal, rel=3e-6)
    with pytest.raises(nerm.InvalidInputError, match="at most 12 different integers"):
        nerm.NeutralSVC(eta=1.0).fit(nerm.Chunks(pieces(X, y, rng.integers(0, 70, 900))))
    with pytest.raises(nerm.InvalidInputError, match="at least two values"):
        nerm.NeutralSVC(eta=1.0).fit(nerm.Chunks(pieces(X, y, np.ones(900))))


@pytest.mark.parametrize("what", ["X", "columns", "y", "viewpoint", "sample_weight", "order"])
def test_any_change_between_passes_is_noticed(what):
    X, y, v = draw(900)
    s, calls = np.random.default_rng(1).uniform(1, 2, 900), []

    def read():
        calls.append(1)
        given = {"X": X.copy(), "y": y.copy(), "viewpoint": v.copy(), "sample_weight": s.copy()}
        if len(calls) > 1:
            if what == "columns":
                given["X"] = given["X"][:, [1, 0, 2, 3]]
            elif what == "order":
                given = {name: values[::-1] for name, values in given.items()}
            else:
                given[what][5] = -given[what][5] if what != "sample_weight" else 3.0
        return [given]

    refused("chunks must not change between passes. Got other values in chunk 0", read)


def test_broken_files(tmp_path):
    X, y, v = draw(200, sparse=True)
    path = tmp_path / "rows.npz"
    save_chunk(path, X, y, v)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused("rows.npz' must be a file of numpy.savez", [str(path)])
    path.write_bytes(b"")
    refused("rows.npz' must be a file of numpy.savez", [str(path)])
    np.savez(path, data=X.data, indices=X.indices + 1000, indptr=X.indptr, shape=X.shape, y=y)
    refused("rows.npz' must be a file of numpy.savez", [str(path)])
    path.write_bytes(whole)
    refused("every chunk must have a name of its own", [str(path), str(path)])
    refused("a chunk must fit into a quarter of the memory budget", [str(path)], memory=10_000)
    big = X.toarray()
    refused("Got chunk 0 with", lambda: [(big, y, v)], memory=10_000)


def test_a_file_that_goes_in_the_middle_of_a_fit(tmp_path):
    X, y, v = draw(600)
    paths = [str(tmp_path / f"{i}.npz") for i in range(2)]
    for path, rows in zip(paths, np.array_split(np.arange(600), 2), strict=True):
        save_chunk(path, X[rows], y[rows], v[rows])
    problem = OBJECTIVE.on(nerm.Chunks(paths))
    (tmp_path / "1.npz").unlink()
    with pytest.raises(
        nerm.InvalidInputError, match=r"every file of chunks must exist in every pass\. Got no file"
    ):
        problem.solve()


def test_a_checkpoint_is_of_one_fit_only(tmp_path):
    X, y, v = draw(600)
    path = tmp_path / "fit.npz"
    chunks = nerm.Chunks(pieces(X, y, v))
    OBJECTIVE.on(chunks).solve(checkpoint=path)
    nearly = nerm.Risk(nerm.Hinge()) + 0.01 * nerm.SquaredL2() + (1 + 1e-9) * nerm.Neutrality(nerm.Hinge())
    for other, options in ((nearly, {}), (OBJECTIVE, {"intercept": False})):
        with pytest.raises(nerm.InvalidInputError, match="of another fit"):
            other.on(chunks, **options).solve(checkpoint=path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(nerm.InvalidInputError, match="which cannot be read"):
        OBJECTIVE.on(chunks).solve(checkpoint=path)


def test_path_and_search_have_checkpoints(tmp_path):
    X, y, v = draw(600)
    chunks = nerm.Chunks(pieces(X, y, v))
    problem = OBJECTIVE.on(chunks)
    first = problem.path([0.1, 1.0], checkpoint=tmp_path / "path.npz")
    before = chunks.passes
    again = problem.path([0.1, 1.0], checkpoint=tmp_path / "path.npz")
    assert chunks.passes == before
    assert [one.objective.total for one in again] == [one.objective.total for one in first]
    chunks = nerm.Chunks(pieces(X, y, v), checkpoint=tmp_path / "search.npz")
    problem = OBJECTIVE.on(chunks)
    found = problem.neutralize(0.05, tol=1e-5)
    before = chunks.passes
    assert problem.neutralize(0.05, tol=1e-5).eta == found.eta
    assert chunks.passes <= before + found.solves  # thresholds are counted again, nothing is solved again


@pytest.mark.parametrize("name", ["solve", "path", "neutralize"])
def test_chunked_problem_has_the_signatures_of_problem(name):
    """Names, defaults and kinds of the parameters agree."""
    whole, chunked = (inspect.signature(getattr(cls, name)) for cls in (nerm.Problem, ChunkedProblem))
    assert whole == chunked


def test_chunked_problem_refuses_solvers_of_rows_in_memory():
    X, y, v = draw(60)
    problem = OBJECTIVE.on(nerm.Chunks(pieces(X, y, v)))
    with pytest.raises(nerm.InvalidInputError, match="the solver of a problem on chunks must be 'auto'"):
        problem.solve("smo")
    with pytest.raises(nerm.InvalidInputError, match="an option of a problem on chunks must be one of"):
        problem.solve(max_iter=3)


def test_chunked_neutralize_chooses_a_surrogate_and_measures_on_other_rows():
    X, y, v = draw(600)
    problem = OBJECTIVE.on(nerm.Chunks(pieces(X, y, v)))
    found = problem.neutralize(
        0.1, tol=1e-4, surrogate=[nerm.Hinge(), nerm.Identity()], on=(X[:300], y[:300], v[:300])
    )
    f = found.solution.decision_function(X[:300])
    assert abs(np.mean(f[v[:300] > 0] > 0) - np.mean(f[v[:300] < 0] > 0)) <= 0.1
    assert found.surrogate in (nerm.Hinge(), nerm.Identity())
