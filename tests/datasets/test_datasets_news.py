"""``load("news")``: a file of the published form that the test writes, every refusal, and the published counts."""

import csv
import gzip
import io

import pytest

from nerm.datasets import DataUnavailableError, load
from nerm.errors import InvalidInputError

COLUMNS = ["text", "news_link", "outlet", "topic", "type", "label_bias", "label_opinion", "biased_words"]
ROWS = [
    ['He said; "no".', "https://a/1", "Alternet", "taxes", "left", "Biased", "Entirely factual", "[]"],
    [
        "Prices rose – again.",
        "https://b/1",
        "Breitbart",
        "taxes",
        "right",
        "Non-biased",
        "Entirely factual",
        "[]",
    ],
    ["NA", "https://c/1", "Reuters", "sport", "center", "Non-biased", "Entirely factual", "[]"],
    ["Nobody knows whose.", "", "HuffPost", "sport", "", "Biased", "No agreement", "['whose']"],
    ["They disagreed.", "https://a/2", "Alternet", "sport", "left", "No agreement", "No agreement", "[]"],
]


def written(path, rows=ROWS, columns=COLUMNS):
    """Write rows as the published file is written: ';' between cells, a byte-order mark first."""
    text = io.StringIO()
    csv.writer(text, delimiter=";").writerows([columns, *rows])
    content = text.getvalue().encode("utf-8-sig")
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["mine.csv", "mine.csv.gz"])
def test_sentences_with_a_side_and_a_label_are_the_rows(tmp_path, name):
    data = load("news", path=written(tmp_path / name))
    assert data.X.to_dict("list") == {
        "text": ['He said; "no".', "Prices rose – again."],
        "topic": ["taxes", "taxes"],
    }
    assert data.X.index.tolist() == [0, 1]  # where they stand in the frame
    assert data.y.tolist() == [-1, 1]
    assert data.viewpoint.tolist() == [-1, 1]
    assert data.frame["text"].tolist() == [row[0] for row in ROWS]
    assert data.frame["type"].isna().tolist() == [False, False, False, True, False]
    assert data.frame["news_link"].isna().sum() == 1
    assert "3674 rows, this one 5" in data.description


def test_a_folder_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.delenv("NERM_DATA", raising=False)
    (tmp_path / "news").mkdir()
    written(tmp_path / "news" / "final_labels_SG2.csv.gz")
    assert load("news", data_home=tmp_path).X.shape == (2, 2)
    monkeypatch.setenv("NERM_DATA", str(tmp_path))
    assert load("news").X.shape == (2, 2)


def test_the_error_says_where_the_file_is_to_be_had(tmp_path, monkeypatch):
    monkeypatch.delenv("NERM_DATA", raising=False)
    where = r"Get it from github\.com/Media-Bias-Group/.*BABE, folder data and call load\('news', path=…\)"
    name = r"'path' must name the file final_labels_SG2\.csv, .*"
    with pytest.raises(DataUnavailableError, match=name + r"Got no path, and no such file in .* " + where):
        load("news")
    with pytest.raises(DataUnavailableError, match=r"Got no file at .*nowhere\.csv\. " + where):
        load("news", path=tmp_path / "nowhere.csv")


def test_another_table_is_refused(tmp_path):
    path = tmp_path / "news.csv"
    written(path, [row[:4] for row in ROWS], COLUMNS[:4])
    with pytest.raises(
        InvalidInputError, match=r"must have the 8 columns .* Got a file without 'type', 'label_bias'"
    ):
        load("news", path=path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match=r"must be a whole CSV file\. Got one that cannot be read"):
        load("news", path=path)
    path.write_bytes(b"")
    with pytest.raises(InvalidInputError, match=r"must be a whole CSV file\. Got one that cannot be read"):
        load("news", path=path)


def test_text_has_no_other_coding(tmp_path):
    with pytest.raises(
        InvalidInputError, match=r"'coding' must be 'raw' for 'news', which is text\. Got 'one-hot'\."
    ):
        load("news", "one-hot", path=written(tmp_path / "news.csv"))


def test_the_published_file_counts_as_its_authors_say(real_data):
    if not (real_data / "news").is_dir():
        pytest.skip(f"needs final_labels_SG2.csv: none in {real_data} (set NERM_DATA)")
    data = load("news", data_home=real_data)
    assert data.frame.shape == (3674, 8)
    sides = data.frame["type"].value_counts(dropna=False)
    assert [sides["left"], sides["right"], sides["center"]] == [989, 993, 692]
    assert data.frame["type"].isna().sum() == 1000
    assert len(data.X) == 1981
    by_outlet = data.frame.dropna(subset=["type"]).groupby("outlet", observed=True)["type"].nunique()
    assert (by_outlet == 1).all()  # so an outlet's name would give its side away: it is no feature
