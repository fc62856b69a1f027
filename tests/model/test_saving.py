"""Files: what is saved comes back the same, in another process too; what is damaged is refused in one sentence."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import nerm
from nerm import NERMClassifier, NeutralSVC
from nerm.viewpoint import Column
from tests.conftest import make_data

X, Y, V = make_data(0, n=40)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(sex=np.where(V > 0, "m", "f"))


def solved(X=X, kernel=None, loss=None, regularizer=None, **kwargs):
    objective = nerm.Risk(loss or nerm.Hinge()) + 0.1 * (regularizer or nerm.SquaredL2())
    objective += 0.5 * nerm.Neutrality(nerm.Hinge(), weights="balanced")
    return objective.on(X, Y, viewpoint=V, kernel=kernel, **kwargs).solve()


MODELS = {
    "linear": lambda: NeutralSVC(eta=0.5, weights="balanced").fit(X, Y, viewpoint=V),
    "rbf": lambda: NeutralSVC(eta=0.5, kernel="rbf").fit(X, Y, viewpoint=V),
    "sparse kernel": lambda: NeutralSVC(kernel="rbf").fit(sp.csr_matrix(X), Y),
    "precomputed": lambda: NeutralSVC(kernel="precomputed").fit(X @ X.T, Y),
    "atoms": lambda: NERMClassifier(
        nerm.SmoothHinge(0.3), nerm.ElasticNet(0.2), "logistic", eta={"s": 1.0}
    ).fit(X, Y, viewpoint={"s": V}),
    "groups": lambda: NERMClassifier(regularizer=nerm.GroupL2([[0, 1], [2, 3]])).fit(X, Y),
    "kernel value": lambda: NERMClassifier(kernel=nerm.kernels.Polynomial(degree=2)).fit(X, Y),
    "classes": lambda: NeutralSVC(class_weight={"a": 2.0, "b": 1.0, "c": 1.0}).fit(
        X, np.array(list("abc"), dtype=object)[np.arange(40) % 3]
    ),
    "boolean": lambda: NeutralSVC().fit(X, Y > 0),
    "frame": lambda: NeutralSVC(eta=1.0).fit(FRAME, Y, viewpoint=Column("sex", drop=True)),
}
INPUT = {"precomputed": X @ X.T, "frame": FRAME}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_the_same(name, tmp_path):
    model, new = MODELS[name](), INPUT.get(name, X)
    model.save(tmp_path / "model.nerm")
    loaded = nerm.load(tmp_path / "model.nerm")
    assert type(loaded) is type(model)
    assert repr(loaded.get_params()) == repr(model.get_params())
    np.testing.assert_array_equal(loaded.decision_function(new), model.decision_function(new))
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.certificate_ == model.certificate_
    assert repr(loaded.explain()).replace(" (as saved)", "") == repr(model.explain())
    fitted = {k for k in vars(model) if k.endswith("_")}
    assert {k for k in vars(loaded) if k.endswith("_")} == fitted
    with pytest.raises(nerm.InvalidInputError, match=r"Fit again with viewpoint=..."):
        loaded.fit_facts(label=loaded.classes_[-1])


SOLUTIONS = {
    "linear": lambda: solved(),
    "sparse": lambda: solved(X=sp.csr_matrix(X)),
    "rbf": lambda: solved(kernel="rbf"),
    "logistic l1": lambda: solved(loss=nerm.Logistic(), regularizer=nerm.L1()),
    "weighted": lambda: solved(sample_weight=np.linspace(0, 1, 40), intercept=False),
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_solution_comes_back_the_same_and_can_be_certified_again(name, tmp_path):
    solution = SOLUTIONS[name]()
    solution.save(str(tmp_path / "solution.nerm"))
    loaded = nerm.load(str(tmp_path / "solution.nerm"))
    assert repr(loaded) == repr(solution)
    assert loaded.status is solution.status
    np.testing.assert_array_equal(loaded.decision_function(X), solution.decision_function(X))
    np.testing.assert_array_equal(loaded.multipliers.alpha, solution.multipliers.alpha)
    again = loaded.problem.certify(loaded.coef, loaded.intercept, loaded.multipliers)
    assert again.relative_gap == pytest.approx(solution.certificate.relative_gap, abs=1e-9)
    assert loaded.fit_facts().gap == solution.fit_facts().gap


@pytest.mark.parametrize(
    "atom", [*nerm.atoms.margin_functions().values(), *nerm.atoms.regularizers().values()]
)
def test_every_atom_can_be_saved(atom, tmp_path):
    model = NERMClassifier().fit(X, Y)
    name = "regularizer" if issubclass(atom, nerm.Regularizer) else "surrogate"
    model.set_params(**{name: atom()}).save(tmp_path / "m")
    assert getattr(nerm.load(tmp_path / "m"), name) == atom()


@pytest.mark.long
def test_a_fresh_process_predicts_identically(tmp_path):
    model = MODELS["rbf"]()
    model.save(tmp_path / "model.nerm")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy, nerm; folder = sys.argv[1]; "
        "scores = nerm.load(folder + '/model.nerm').decision_function(numpy.load(folder + '/X.npy')); "
        "assert 'cvxpy' not in sys.modules and 'pickle' in sys.modules; numpy.save(folder + '/scores.npy', scores)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), model.decision_function(X))


def test_a_model_travels_without_its_training_rows(tmp_path):
    NeutralSVC(eta=0.5).fit(X, Y, viewpoint=V).save(tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        arrays = [
            np.load(archive.open(n), allow_pickle=False) for n in archive.namelist() if n.endswith(".npy")
        ]
    assert max(a.size for a in arrays) <= 4


def test_pickle_works_too_for_those_who_trust_it():
    model = MODELS["rbf"]()
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X)
    )


@pytest.mark.parametrize("name", ["rbf", "classes"])
def test_a_truncated_file_is_refused(name, tmp_path):
    path = tmp_path / "m.nerm"
    MODELS[name]().save(path)
    whole = path.read_bytes()
    for length in [0, 1, 10, *range(50, len(whole), max(1, len(whole) // 40)), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(nerm.NermError) as caught:
            nerm.load(path)
        assert "must be a file written by save() of this nerm. Got a file that is truncated, damaged" in str(
            caught.value
        )
        assert isinstance(caught.value, ValueError)


@pytest.mark.long
def test_a_damaged_file_is_refused_or_harmless(tmp_path):
    path = tmp_path / "m.nerm"
    model = MODELS["atoms"]()
    model.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    tables = np.arange(whole.index(b"PK\x01\x02"), len(whole))  # where a zip file keeps its offsets and sizes
    places = [*rng.choice(tables, 300), *rng.integers(len(whole), size=300)]
    for position in places:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        try:
            loaded = nerm.load(path)
        except nerm.NermError:
            refused += 1
        else:  # a bit that means nothing, such as the time of writing
            np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert refused > 150


def rewritten(path, change):
    """Rewrite the header of a saved file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    members["header.json"] = json.dumps(change(header)).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda h: {**h, "version": 4}, "Got version 4 of the format, and this nerm reads 2 and 3."),
        (lambda h: {**h, "format": "other"}, "Got a file without valid nerm content (KeyError)."),
        (lambda h: [], "Got a file without valid nerm content (KeyError)."),
        (
            lambda h: {**h, "content": {"$record": "system", "fields": {}}},
            "Got a file without valid nerm content",
        ),
        (
            lambda h: {**h, "content": {"$kernel": "rbf", "fields": {"gamma": -1}}},
            "Got a file without valid nerm content",
        ),
        (lambda h: {**h, "content": {"$array": 99}}, "Got a file without valid nerm content (KeyError)."),
        (lambda h: {**h, "content": {"a": 1}}, "Got a file without a solution or a model in it."),
        (lambda h: {**h, "content": None}, "Got a file without a solution or a model in it."),
        (
            lambda h: {**h, "content": {**h["content"], "fitted": {"solutions_": [None]}}},
            "Got a file without valid nerm content (KeyError).",
        ),
        (
            lambda h: {**h, "content": {**h["content"], "fitted": {"predict": None}}},
            "Got a file without valid nerm content (KeyError).",
        ),
    ],
)
def test_foreign_content_is_refused(change, text, tmp_path):
    path = tmp_path / "m.nerm"
    MODELS["linear"]().save(path)
    rewritten(path, change)
    with pytest.raises(nerm.InvalidInputError) as caught:
        nerm.load(path)
    assert text in str(caught.value)


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "x"
    for content in (b"", b"hello", pickle.dumps(MODELS["linear"]())):
        path.write_bytes(content)
        with pytest.raises(nerm.InvalidInputError, match="truncated, damaged or no nerm file"):
            nerm.load(path)
    np.savez(tmp_path / "x.npz", a=np.ones(3))
    with pytest.raises(nerm.InvalidInputError, match="without valid nerm content"):
        nerm.load(tmp_path / "x.npz")
    with pytest.raises(FileNotFoundError):
        nerm.load(tmp_path / "nothing")


def test_an_array_of_objects_never_unpickles(tmp_path):
    path = tmp_path / "m.nerm"
    MODELS["linear"]().save(path)
    np.save(tmp_path / "evil.npy", np.array([print], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["arrays/0.npy"] = (tmp_path / "evil.npy").read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(nerm.InvalidInputError, match="without valid nerm content"):
        nerm.load(path)


@pytest.mark.parametrize(
    "make",
    [
        lambda: NeutralSVC(kernel=lambda A, B: A @ B.T).fit(X, Y),
        lambda: solved(kernel=lambda A, B: A @ B.T),
    ],
)
def test_code_does_not_travel(make, tmp_path):
    thing = make()
    with pytest.raises(nerm.InvalidInputError) as caught:
        thing.save(tmp_path / "m")
    text = str(caught.value)
    assert "a saved object must consist of arrays, atoms and nerm's own kernels. Got " in text
    assert "which is code. Keep the code that made it" in text
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "m"
    model = MODELS["linear"]()
    model.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_what_is_not_fitted_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        NeutralSVC().save(tmp_path / "m")


@pytest.mark.long
def test_nerm_is_imported_without_scikit_learn_or_solvers():
    code = (
        "import sys, nerm; nerm.solvers.available(); "
        "heavy = {'sklearn', 'cvxpy', 'clarabel', 'osqp', 'numba'} & set(sys.modules); assert not heavy, heavy; "
        "assert {'NeutralSVC', 'NERMClassifier', 'load', 'bounds', 'datasets', 'svm'} <= set(dir(nerm)); "
        "assert nerm.bounds.guarantee and nerm.NeutralSVC and nerm.load"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="NeutralSVM"):
        _ = nerm.NeutralSVM


def remade(path, change):
    """Rewrite the members of a saved file, packed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in change(members).items():
            archive.writestr(name, data)


def as_npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "bomb",
    [
        lambda members: {**members, "arrays/0.npy": as_npy(np.zeros(13_000_000))},
        lambda members: {**members, "header.json": members["header.json"] + b" " * 6_000_000},
        lambda members: {**members, "arrays/98.npy": b"0" * 101_000_000},
    ],
    ids=["array", "header", "member that nobody asks for"],
)
def test_a_small_file_that_unpacks_to_much_is_refused_before_it_does(bomb, tmp_path, monkeypatch):
    path = tmp_path / "m.nerm"
    MODELS["linear"]().save(path)
    remade(path, bomb)
    assert path.stat().st_size < 1_000_000
    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("something was unpacked"))
        with pytest.raises(nerm.InvalidInputError, match=r"must unpack to at most 100,000,000 bytes"):
            nerm.load(path)
    with pytest.raises(nerm.InvalidInputError, match=r"'max_bytes' must be"):
        nerm.load(path, max_bytes=-1)


def test_who_needs_more_may_ask_for_it(tmp_path):
    path = tmp_path / "m.nerm"
    model = MODELS["linear"]()
    model.save(path)
    remade(path, lambda members: {**members, "header.json": members["header.json"] + b" " * 6_000_000})
    np.testing.assert_array_equal(
        nerm.load(path, max_bytes=1e9).decision_function(X), model.decision_function(X)
    )
    with pytest.raises(nerm.InvalidInputError, match=r"pass a larger nerm.load\(path, max_bytes=...\)"):
        nerm.load(path, max_bytes=1000)


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("make", [MODELS["linear"], lambda: solved()], ids=["model", "solution"])
def test_numbers_that_are_not_finite_are_refused(make, number, tmp_path):
    path = tmp_path / "m.nerm"
    make().save(path)

    def change(members):
        name = next(name for name in members if name.endswith(".npy") and b"'<f8'" in members[name])
        array = np.load(io.BytesIO(members[name]))
        array.flat[0] = number
        return {**members, name: as_npy(array)}

    remade(path, change)
    with pytest.raises(nerm.InvalidInputError, match="without valid nerm content"):
        nerm.load(path)


def test_an_index_out_of_range_never_reaches_memory(tmp_path):
    path = tmp_path / "m.nerm"
    MODELS["sparse kernel"]().save(path)

    def change(members):
        arrays = {name: np.load(io.BytesIO(data)) for name, data in members.items() if name.endswith(".npy")}
        name = next(
            name for name, array in arrays.items() if array.dtype == np.int32 and array.max(initial=0) == 3
        )
        return {**members, name: as_npy(np.where(arrays[name] == 3, 10**9, arrays[name]).astype(np.int32))}

    remade(path, change)
    with pytest.raises(nerm.InvalidInputError, match="without valid nerm content"):
        nerm.load(path)


def test_an_edited_certificate_is_computed_again_or_said_to_be_as_saved(tmp_path):
    path = tmp_path / "m.nerm"
    solution = solved()
    solution.save(path)

    def lie(tree):
        if isinstance(tree, dict) and tree.get("$record") == "Certificate":
            tree["fields"]["dual"] = tree["fields"]["primal"]
        for branch in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
            lie(branch)
        return tree

    rewritten(path, lie)
    loaded = nerm.load(path)
    assert loaded.certificate.gap == pytest.approx(solution.certificate.gap, rel=1e-3)
    assert not loaded.certificate.saved
    model = MODELS["linear"]()
    model.save(path)
    rewritten(path, lie)
    assert nerm.load(path).certificate_.saved
    assert str(nerm.load(path).certificate_).endswith("(as saved)")
    assert not model.certificate_.saved


def test_a_solution_that_its_rows_do_not_bear_out_is_refused(tmp_path):
    path = tmp_path / "m.nerm"
    solution = solved()
    worse = dataclasses.replace(solution, coef=1.1 * solution.coef)
    worse = dataclasses.replace(worse, objective=worse.problem.evaluate(worse.coef, worse.intercept))
    worse.save(path)
    with pytest.raises(nerm.InvalidInputError, match="without valid nerm content"):
        nerm.load(path)
    dataclasses.replace(solution, coef=1.1 * solution.coef).save(path)
    with pytest.raises(nerm.InvalidInputError, match="without valid nerm content"):
        nerm.load(path)
