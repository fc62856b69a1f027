"""Files with atoms of a user's own: names and numbers travel, the atom is brought along and held against them."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm import NERMClassifier, Neutrality, Risk, SquaredL2
from tests.conftest import make_data

X, Y, V = make_data(0, n=40)


def loss(bend=1.0, name="mine"):
    return nerm.margin_function(lambda m: cp.pos(bend - m), name=name)


def variation(factor=1.0, name="variation"):
    return nerm.regularizer(lambda w: factor * cp.tv(w), name=name)


@dataclass(frozen=True)
class Tilted(nerm.Hinge):
    """A subclass in a notebook: max(0, 1 - m) with a parameter that it does not use."""

    tilt: float = 0.0


OBJECTIVES = {
    "loss": (Risk(loss()) + 0.1 * SquaredL2() + 0.5 * Neutrality(nerm.Hinge()), {"mine": loss()}),
    "surrogate": (Risk(nerm.Logistic()) + 0.1 * SquaredL2() + 0.5 * Neutrality(loss()), {"mine": loss()}),
    "regularizer": (Risk(nerm.Hinge()) + 0.1 * variation() + 0.1 * SquaredL2(), {"variation": variation()}),
    "subclass": (Risk(Tilted(0.3)) + 0.1 * SquaredL2(), {"Tilted": Tilted(0.3)}),
    "limit": (
        (Risk(nerm.Hinge()) + 0.1 * SquaredL2()).subject_to(Neutrality(loss()) <= 1.05),
        {"mine": loss()},
    ),
}


def solved(objective):
    return objective.on(X, Y, viewpoint=V).solve(tol=1e-5)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_solution_comes_back_certified_again(name, tmp_path):
    objective, atoms = OBJECTIVES[name]
    solution = solved(objective)
    assert solution.status is nerm.Status.OPTIMAL
    solution.save(tmp_path / "s")
    loaded = nerm.load(tmp_path / "s", atoms={**atoms, "another": nerm.Hinge()})
    assert loaded.status is solution.status
    np.testing.assert_array_equal(loaded.decision_function(X), solution.decision_function(X))
    assert loaded.certificate.relative_gap <= 1.01 * solution.tol
    assert loaded.certificate.primal == pytest.approx(solution.certificate.primal, rel=1e-9)
    own = next(iter(atoms.values()))
    terms = [t.term for t in loaded.problem.objective.terms] + [c.term for c in loaded.problem.limits]
    assert any(own is atom for t in terms for atom in (t, *vars(t).values()))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_without_the_atoms_a_sentence_lists_them(name, tmp_path):
    objective, atoms = OBJECTIVES[name]
    solved(objective).save(tmp_path / "s")
    needed = ", ".join(map(repr, atoms))
    for given, got in (
        (None, "none"),
        ({"other": nerm.Hinge()}, "'other'"),
        ([nerm.Hinge()], r"\[Hinge\(\)\]"),
    ):
        with pytest.raises(
            nerm.InvalidInputError, match=rf"must hold the atoms of .*: {needed}\. Got {got}\. Make them"
        ):
            nerm.load(tmp_path / "s", atoms=given)


OTHERS = {
    "another function": {"mine": loss(bend=1.2)},
    "a regularizer": {"mine": variation()},
    "no atom": {"mine": print},
    "nearly the same": {"mine": loss(bend=1.001)},
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_function_of_the_same_name_is_refused(name, tmp_path):
    solved(OBJECTIVES["loss"][0]).save(tmp_path / "s")
    NERMClassifier(loss(), eta=0.0).fit(X, Y).save(tmp_path / "m")
    for file in ("s", "m"):
        with pytest.raises(
            nerm.InvalidInputError, match=r"the same functions .*: 'mine'\. Got one with other values"
        ):
            nerm.load(tmp_path / file, atoms=OTHERS[name])


def test_another_regularizer_of_the_same_name_is_refused(tmp_path):
    solved(OBJECTIVES["regularizer"][0]).save(tmp_path / "s")
    NERMClassifier(regularizer=variation()).fit(X, Y).save(tmp_path / "m")
    for file in ("s", "m"):
        for other in (variation(1.001), nerm.L1(), nerm.Hinge()):
            with pytest.raises(nerm.InvalidInputError, match="the same functions as when the file was saved"):
                nerm.load(tmp_path / file, atoms={"variation": other})


def test_one_that_differs_where_nobody_looked_is_seen_by_the_certificate(tmp_path):
    """The values at the margins that are compared agree, the function does not: at the rows it is another."""
    solution = solved(OBJECTIVES["loss"][0])
    solution.save(tmp_path / "s")

    class Bumped(nerm.Hinge):
        def value(self, m):  # as the hinge at multiples of a half
            m = np.asarray(m, dtype=float)
            return np.maximum(0.0, 1 - m) + 0.1 * np.sin(2 * np.pi * m) ** 2

    other = Bumped()
    with pytest.raises(nerm.InvalidInputError, match="the same functions as when the file was saved"):
        nerm.load(tmp_path / "s", atoms={"mine": other})


def test_a_certificate_is_not_believed_but_computed(tmp_path):
    solution = solved(OBJECTIVES["loss"][0])
    doubtful = replace(solution, coef=solution.coef * 1.1)
    value = doubtful.problem.evaluate(doubtful.coef, doubtful.intercept)
    replace(doubtful, objective=value).save(tmp_path / "s")
    with pytest.raises(nerm.InvalidInputError, match="the same functions as when the file was saved"):
        nerm.load(tmp_path / "s", atoms={"mine": loss()})


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_model_comes_back_the_same(kernel, tmp_path):
    model = NERMClassifier(loss(), surrogate=Tilted(), eta=0.5, kernel=kernel).fit(X, Y, viewpoint=V)
    model.save(tmp_path / "m")
    loaded = nerm.load(tmp_path / "m", atoms={"mine": loss(), "Tilted": Tilted()})
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.certificate_ == model.certificate_
    assert repr(loaded.get_params(deep=False)) == repr(model.get_params(deep=False))


def test_two_of_one_name_are_refused(tmp_path):
    objective = Risk(loss()) + 0.1 * SquaredL2() + 0.5 * Neutrality(loss(0.9))
    with pytest.raises(
        nerm.InvalidInputError, match=r"different names\. Got two atoms named 'mine'\. Give one"
    ):
        solved(objective).save(tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_no_code_is_in_the_file_and_others_have_no_names(tmp_path):
    solved(OBJECTIVES["loss"][0]).save(tmp_path / "s")
    solved(Risk(nerm.Hinge()) + 0.1 * SquaredL2()).save(tmp_path / "plain")
    headers = []
    for file in ("s", "plain"):
        with zipfile.ZipFile(tmp_path / file) as archive:
            headers.append(json.loads(archive.read("header.json")))
    assert [header["atoms"] for header in headers] == [["mine"], []]
    assert "lambda" not in json.dumps(headers[0])
    assert nerm.load(tmp_path / "plain", atoms={}).status is nerm.Status.OPTIMAL


def test_a_file_without_the_list_of_names_is_read_as_ever(tmp_path):
    solved(Risk(nerm.Hinge()) + 0.1 * SquaredL2()).save(tmp_path / "plain")
    with zipfile.ZipFile(tmp_path / "plain") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    del header["atoms"]
    with zipfile.ZipFile(tmp_path / "old", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, json.dumps(header) if name == "header.json" else data)
    assert nerm.load(tmp_path / "old").status is nerm.Status.OPTIMAL
