"""The report as text: whole, escaped, self-contained."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from nerm.report.fitting import Settings
from nerm.report.page import axis, figure_svg, render_page
from nerm.report.study import run_study
from nerm.tables import make_task, parse_table
from tests.cli.conftest import as_csv, census


@pytest.fixture(scope="module")
def html(study):
    return render_page(study, "nerm tradeoff <census>.csv")


def test_no_address_is_loaded(html, study):
    for text in (html, figure_svg(study)):
        found = re.findall(r"""(?:src|href|url|@import)\s*[=(]\s*["']?([^"')\s>]+)""", text)
        assert found == []
        assert set(re.findall(r"https?://[^\s\"'<>]+", text)) <= {"http://www.w3.org/2000/svg"}


def test_words_of_the_data_are_escaped(html, study):
    assert "<b>clerk" not in html
    assert "job = &lt;b&gt;clerk&lt;/b&gt; &amp; co" in html
    assert "&lt;census&gt;.csv" in html
    assert "<census>" not in figure_svg(study)


class Balanced(HTMLParser):
    """Checks that tags close in order and that no id is used twice."""

    VOID = frozenset({"meta", "br", "img", "input", "hr", "link"})

    def __init__(self):
        super().__init__()
        self.open, self.ids = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_markup_is_whole(html):
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))


def test_one_part_a_weight_and_only_the_chosen_one_shown(html, study):
    parts = re.findall(r'<section data-choice="(\d+)" aria-labelledby="choice-\1"( hidden)?>', html)
    assert [int(k) for k, _ in parts] == list(range(len(study.points)))
    assert [k for k, (_, hidden) in enumerate(parts) if not hidden] == [study.chosen]


def test_the_numbers_are_those_of_the_study(html, study):
    for k, point in enumerate(study.points):
        part = html.split(f'data-choice="{k}"')[1].split("</section>")[0]
        assert f'<b data-field="auc">{point.measures["auc"]:.3f}</b>' in part
        assert f'<b data-field="changed">{point.decisions["changed"]:.0f}</b>' in part
        assert f"{point.model.solution.certificate.relative_gap:.1e}" in part
        for group in point.groups:
            assert f"{1000 * group.rates['positive_rate']:.0f} get “income = &gt;50K”" in part
        for statement in study.statements(point):
            assert statement.source in part


def test_counts_of_individuals_add_up(study):
    """Group rates, weighted by group size, are everyone's; changes are the difference of positives."""
    plain = study.points[0]
    n = len(study.task)
    for point in study.points:
        everyone = 1000 * sum(g.rows * g.rates["positive_rate"] for g in point.groups) / n
        assert point.decisions["positive"] == pytest.approx(everyone)
        assert point.decisions["positive"] - plain.decisions["positive"] == pytest.approx(
            point.decisions["to_positive"] - point.decisions["to_negative"]
        )
        assert point.decisions["correct"] == pytest.approx(1000 * point.measures["accuracy"])
        assert point.decisions["wrongly_negative"] + point.decisions["wrongly_positive"] == pytest.approx(
            1000 - point.decisions["correct"]
        )
        difference = point.groups[0].rates["positive_rate"] - point.groups[1].rates["positive_rate"]
        assert point.measures["calders_verwer_score"] == pytest.approx(difference)


def test_the_choice_is_made_on_held_out_rows(study):
    plain, chosen = study.points[0], study.points[study.chosen]
    affordable = [
        p for p in study.points if p.measures["auc"] >= plain.measures["auc"] - study.settings.budget
    ]
    assert chosen in affordable
    best = min(abs(p.measures["calders_verwer_score"]) for p in affordable if p.collapse is None)
    assert abs(chosen.measures["calders_verwer_score"]) == best


def test_held_out_bounds_share_delta_among_all_weights(study):
    """The bound at every weight is wider than the plain hold-out bound on all rows would be."""
    from math import log, sqrt

    plain = sqrt(2 * log(2 / study.settings.delta) / len(study.task))
    for point in study.points:
        statement = study.statements(point)[0]
        assert statement.quantity == "C_sgn"
        assert statement.bound >= min(1.0, statement.on_sample + plain)


@pytest.mark.parametrize("values", [[0.5, 0.5], [0.7123, 0.7131], [0.0, 1.0], [0.31, 0.92], [1e-9, 2e-9]])
def test_axes_hold_their_values(values):
    scale = axis(values, 0.0, 100.0)
    assert all(0 <= scale.at(v) <= 100 for v in values)
    assert 3 <= len(scale.ticks) <= 12


@pytest.fixture(scope="module")
def three_groups():
    """Return a table of three groups, one of them small."""
    rows = census()
    for k, row in enumerate(rows):
        row["sex"] = "unknown" if k % 12 == 0 else row["sex"]
    return make_task(parse_table(as_csv(rows), "census.csv"), "income", "sex")


def test_three_groups_and_intervals(three_groups):
    study = run_study(three_groups, Settings(etas=(0.0, 0.5)))
    html = render_page(study)
    whole(html)
    for point in study.points:
        part = html.split(f'data-choice="{study.points.index(point)}"')[1].split("</section>")[0]
        low, high = point.intervals["calders_verwer_score"]
        assert f"95 %: {low:+.3f} to {high:+.3f}".replace("-", "−") in part
        assert "few rows" in part
        assert "the largest between two groups" in part


def whole(html):
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
