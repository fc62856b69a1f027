"""``load``: known facts of the data, both routes to the same frame, and every refusal's sentence."""

from __future__ import annotations

import csv
import gzip
import pickle
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from nerm.datasets import DataUnavailableError, load, names
from nerm.datasets.loading import PUBLISHED
from nerm.errors import InvalidInputError, UnknownNameError

GERMAN_CODES = PUBLISHED["german"]["codes"]

# ---------------------------------------------------------------- the published tables


def test_adult_is_coded_as_the_paper_counts(real_data):
    data = load("adult", "nominal", data_home=real_data)
    assert data.X.shape == (16281, 13)
    assert [len(values) for values in data.categories.values()] == [4, 7, 4, 16, 4, 7, 14, 6, 5, 2, 2, 3, 8]
    assert data.categories["age"] == ["<= 28", "(28, 37]", "(37, 48]", "> 48"]
    assert data.categories["fnlwgt"] == ["<= 116736", "(116736, 177831]", "(177831, 238384]", "> 238384"]
    assert data.categories["education-num"] == ["<= 9", "(9, 10]", "(10, 12]", "> 12"]
    assert data.categories["hours-per-week"] == ["<= 40", "(40, 45]", "> 45"]
    assert data.categories["capital-gain"] == data.categories["capital-loss"] == ["<= 0", "> 0"]
    one_hot = load("adult", "one-hot", data_home=real_data)
    assert sp.issparse(one_hot.X)
    assert one_hot.X.format == "csr"
    assert one_hot.X.shape == (16281, 80)
    assert len(one_hot.feature_names) == 80
    np.testing.assert_array_equal(one_hot.y, data.y)


def test_targets_and_viewpoints_count_as_in_the_raw_files(real_data):
    with gzip.open(real_data / "adult" / "adult.test.gz", "rt") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) == 15]
    adult = load("adult", data_home=real_data)
    np.testing.assert_array_equal(adult.y > 0, [row[14] == ">50K." for row in rows])
    np.testing.assert_array_equal(adult.viewpoint > 0, [row[9] == "Male" for row in rows])
    assert "sex" not in adult.X
    assert "class" not in adult.X
    assert adult.X.isna().sum().sum() == sum(row.count("?") for row in rows)
    german = load("german", data_home=real_data)
    assert (german.y > 0).sum() == 700
    assert (german.viewpoint > 0).sum() == 37
    bank = load("bank", data_home=real_data)
    assert bank.X.shape == (45211, 15)
    assert (bank.y > 0).sum() == 5289
    assert (bank.viewpoint < 0).sum() == 7244
    for data in (adult, german, bank):  # the favoured group has the desired outcome more often
        assert data.y[data.viewpoint > 0].mean() > data.y[data.viewpoint < 0].mean()
        assert data.licence.startswith("CC BY 4.0")
        assert data.source.startswith("UCI file")
        assert data.feature_names == list(data.X.columns)


def like_openml(name, folder):
    """Build OpenML's frame from the UCI text with the csv module: names, order, types, labels as there."""
    if name == "adult":
        with gzip.open(folder / "adult" / "adult.test.gz", "rt") as file:
            rows = [[cell.strip().rstrip(".") for cell in row] for row in csv.reader(file) if len(row) == 15]
        frame = pd.DataFrame(rows, columns=list(load("adult", data_home=folder).frame.columns)).replace(
            "?", np.nan
        )
        numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
        frame = pd.concat(
            [frame, frame.iloc[:100]], ignore_index=True
        )  # OpenML's has the training part after it
    elif name == "german":
        columns = PUBLISHED["german"]["columns"]
        with gzip.open(folder / "german" / "german.data.gz", "rt") as file:
            rows = [line.split() for line in file]
        rows = [
            [GERMAN_CODES.get(c, {}).get(v, v) for c, v in zip(columns, row, strict=True)] for row in rows
        ]
        frame = pd.DataFrame(rows, columns=columns)
        numbers = [c for c in columns if c not in GERMAN_CODES]
    else:
        with gzip.open(folder / "bank" / "bank-full.csv.gz", "rt") as file:
            rows = list(csv.reader(file, delimiter=";"))[1:]
        rows = [[*row[:-1], {"no": "1", "yes": "2"}[row[-1]]] for row in rows]
        frame = pd.DataFrame(rows, columns=[*(f"V{k}" for k in range(1, 17)), "Class"])
        numbers = ["V1", "V6", "V10", "V12", "V13", "V14", "V15"]
    for column in frame:
        frame[column] = frame[column].astype(float) if column in numbers else frame[column].astype("category")
    return frame


@pytest.fixture
def no_files(monkeypatch):
    monkeypatch.delenv("NERM_DATA", raising=False)


@pytest.mark.long
@pytest.mark.parametrize("name", ["adult", "bank", "german"])
def test_both_routes_give_the_same_frame(name, real_data, no_files, monkeypatch):
    asked = {}
    served = like_openml(name, real_data)

    def fetch(**options):
        asked.update(options)
        return SimpleNamespace(frame=served.copy())

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    from_openml = load(name)
    from_file = load(name, data_home=real_data)
    assert asked == {
        "data_id": {"adult": 1590, "german": 31, "bank": 1461}[name],
        "as_frame": True,
        "data_home": None,
    }
    pd.testing.assert_frame_equal(from_openml.frame, from_file.frame)
    np.testing.assert_array_equal(from_openml.viewpoint, from_file.viewpoint)
    assert from_openml.source.startswith("OpenML")


def test_an_openml_table_that_is_another_one_is_refused(real_data, no_files, monkeypatch):
    served = like_openml("german", real_data)
    served.loc[3, "duration"] += 1
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: SimpleNamespace(frame=served))
    with pytest.raises(InvalidInputError) as caught:
        load("german")
    assert str(caught.value).startswith(
        "OpenML data set 31 must be the published german.data (checksum 38b6dbf6fb4b…). Got a frame of "
    )
    del served["age"]
    with pytest.raises(
        InvalidInputError, match=r"Got a frame of shape \(1000, 20\) that does not map to it \('age'\)\."
    ):
        load("german")


def test_plain_and_gzip_files_flat_or_in_a_folder_of_their_name(real_data, no_files, monkeypatch, tmp_path):
    text = gzip.decompress((real_data / "german" / "german.data.gz").read_bytes())
    (tmp_path / "german.data").write_bytes(text)
    monkeypatch.setenv("NERM_DATA", str(tmp_path))
    pd.testing.assert_frame_equal(load("german").frame, load("german", data_home=real_data).frame)


def test_a_truncated_file_is_refused(real_data, tmp_path):
    text = gzip.decompress((real_data / "german" / "german.data.gz").read_bytes())
    (tmp_path / "german.data").write_bytes(text[:-100])
    with pytest.raises(InvalidInputError) as caught:
        load("german", data_home=tmp_path)
    assert str(caught.value).startswith(
        f"{tmp_path / 'german.data'} must be the published file (sha256 b21f3d81db80… unzipped). Got sha256 "
    )
    assert str(caught.value).endswith(
        "The file is truncated or changed: download it again, or remove it to load from OpenML."
    )


def test_a_truncated_gzip_file_is_refused(tmp_path):
    (tmp_path / "german.data.gz").write_bytes(gzip.compress(b"A11 6 A34 " * 1000)[:-20])
    with pytest.raises(InvalidInputError, match=r"must be a whole gzip file\. Got one that cannot be read"):
        load("german", data_home=tmp_path)


def test_offline_says_what_to_do(no_files, monkeypatch, tmp_path):
    def fetch(**_):
        raise URLError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(DataUnavailableError) as caught:
        load("bank", data_home=tmp_path)
    assert str(caught.value) == (
        f"'bank' must be on this machine or available from OpenML (id 1461). Got no bank-full.csv "
        f"or bank-full.csv.gz in {tmp_path}, "
        "and OpenML answered URLError: <urlopen error no route>. Go online, or put the UCI file "
        "bank-full.csv in a folder and name it in NERM_DATA or data_home."
    )
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.__suppress_context__  # the network's traceback does not come along
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# ---------------------------------------------------------------- synthetic and diabetes


def test_synthetic_follows_the_construction():
    data = load("synthetic", n=20000, random_state=3)
    w_y, w_v = data.details["w_y"], data.details["w_v"]
    assert w_y[0] == w_v[0]
    assert np.abs(data.X).max() <= 1
    for labels, weights in ((data.y, w_y), (data.viewpoint, w_v)):
        margins = data.X @ weights
        flipped = labels != np.where(margins > 0, 1, -1)
        expected = (1 / (1 + np.exp(np.minimum(100 * np.abs(margins), 700)))).mean()
        assert abs(flipped.mean() - expected) < 4 * np.sqrt(expected / 20000)
        assert 0.001 < flipped.mean() < 0.01  # the corrected noise; the printed one would flip more than 99 %
        assert np.abs(margins[flipped]).max() < 0.2


def test_synthetic_is_seeded_and_grows_by_appending_rows():
    small, large = (load("synthetic", n=n, random_state=7) for n in (50, 80))
    np.testing.assert_array_equal(small.X, large.X[:50])
    np.testing.assert_array_equal(small.y, large.y[:50])
    np.testing.assert_array_equal(small.details["w_v"], large.details["w_v"])
    assert not np.array_equal(small.X, load("synthetic", n=50, random_state=8).X)


def test_diabetes_is_split_at_the_median_and_by_sex():
    data = load("diabetes")
    assert data.X.shape == (442, 9)
    assert "sex" not in data.X
    assert (data.y > 0).sum() == 221
    assert (data.viewpoint > 0).sum() == 207
    assert "10 columns" not in repr(data)
    assert load("diabetes", "nominal").X.max().max() == 3


# ---------------------------------------------------------------- Dutch census


ARFF = """@relation dutch_census
@attribute sex {1,2}
@attribute age {4,5}
@attribute household_position {1110,1121}
@attribute household_size {111,112}
@attribute prev_residence_place {1,2}
@attribute citizenship {1,2}
@attribute country_birth {1,2}
@attribute edu_level {0,1}
@attribute economic_status {111,112}
@attribute cur_eco_activity {131,132}
@attribute Marital_status {1,2}
@attribute occupation {2_1,5_4_9}
@data
1,4,1110,111,1,1,1,0,111,131,1,2_1
2,5,1121,112,2,2,2,1,112,132,2,5_4_9
2,?,1121,112,2,2,2,1,112,132,2,2_1
"""


def test_dutch_reads_the_users_file(tmp_path):
    path = tmp_path / "dutch_census_2001.arff"
    path.write_text(ARFF)
    data = load("dutch", path=path)
    assert data.y.tolist() == [1, -1, 1]
    assert data.viewpoint.tolist() == [1, -1, -1]
    assert data.X.shape == (3, 10)
    assert data.X["age"].isna().tolist() == [False, False, True]
    assert "this one 3" in data.description
    in_folder = load("dutch", data_home=tmp_path)
    pd.testing.assert_frame_equal(in_folder.frame, data.frame)


def test_dutch_refusals(tmp_path):
    path = tmp_path / "d.arff"
    with pytest.raises(
        InvalidInputError,
        match=r"'path' must name the file dutch_census_2001\.arff, .* Got no path, and no such file in .*\. Get it under",
    ):
        load("dutch")
    with pytest.raises(
        DataUnavailableError,
        match=r"Got no file at .*d\.arff\. Get it under IPUMS's terms and call load\('dutch', path=…\)",
    ):
        load("dutch", path=path)
    path.write_text(ARFF[:-20])
    with pytest.raises(
        InvalidInputError,
        match=r"must be a whole ARFF file\. Got one that cannot be read .* It may be truncated",
    ):
        load("dutch", path=path)
    path.write_text(ARFF.replace("household_size", "size"))
    with pytest.raises(
        InvalidInputError, match=r"must have the 12 columns .* Got a file without 'household_size'\."
    ):
        load("dutch", path=path)
    path.write_text(ARFF.split("@data")[0] + "@data\n")
    with pytest.raises(InvalidInputError, match=r"must hold the two classes .* Got no class\."):
        load("dutch", path=path)
    path.write_text("\n".join(line for line in ARFF.splitlines() if not line.endswith(",2_1")) + "\n")
    with pytest.raises(
        InvalidInputError, match=r"must hold the two classes '2_1' and '5_4_9'\. Got '5_4_9'\."
    ):
        load("dutch", path=path)


# ---------------------------------------------------------------- ACSIncome, on a file of its form


def acs_frame(n=40):
    rng = np.random.default_rng(0)
    columns = {
        "AGEP": rng.integers(17, 90, n), "COW": rng.integers(1, 9, n), "SCHL": rng.integers(1, 25, n),
        "MAR": rng.integers(1, 6, n), "OCCP": rng.choice([230.0, 4720.0, 9620.0], n), "POBP": rng.integers(1, 60, n),
        "RELP": rng.integers(0, 18, n), "WKHP": rng.integers(1, 99, n), "SEX": rng.integers(1, 3, n),
        "RAC1P": rng.integers(1, 10, n), "ST": rng.integers(1, 57, n), "PINCP": rng.integers(0, 200_000, n),
    }  # fmt: skip
    return pd.DataFrame(columns)


def test_acs_income_from_a_file_and_from_openml_is_the_same(tmp_path, monkeypatch):
    served = acs_frame()
    served.to_csv(tmp_path / "acs_income.csv", index=False)
    local = load("acs_income", data_home=tmp_path)
    monkeypatch.delenv("NERM_DATA", raising=False)
    monkeypatch.setattr(
        "sklearn.datasets.fetch_openml", lambda **_: SimpleNamespace(frame=served.astype(float))
    )
    online = load("acs_income")
    pd.testing.assert_frame_equal(local.frame, online.frame)
    assert local.y.tolist() == np.where(served["PINCP"] > 50_000, 1.0, -1.0).tolist()
    assert local.viewpoint.tolist() == np.where(served["SEX"] == 1, 1.0, -1.0).tolist()
    assert list(local.X.columns) == ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "RAC1P"]
    assert load("acs_income", "one-hot", data_home=tmp_path).X.shape[0] == len(served)


def test_a_part_of_acs_income_has_the_codes_of_the_whole(tmp_path, monkeypatch):
    """A published part counts races from 0 and has 1 for an income above 50,000."""
    pytest.importorskip("pyarrow")
    monkeypatch.delenv("NERM_DATA", raising=False)
    whole = acs_frame()
    whole.to_csv(tmp_path / "acs_income.csv", index=False)
    expected = {name: load(name, data_home=tmp_path) for name in ("acs_income", "acs_race")}
    part = tmp_path / "other" / "acs"
    part.mkdir(parents=True)
    coded = whole.assign(PINCP=(whole["PINCP"] > 50000).astype(int), RAC1P=whole["RAC1P"] - 1)
    coded.to_parquet(part / "acs_income_part.parquet")
    for name, data in expected.items():
        found = load(name, data_home=tmp_path / "other")
        np.testing.assert_array_equal(found.y, data.y)
        np.testing.assert_array_equal(found.viewpoint, data.viewpoint)
        assert found.X.astype(str).equals(data.X.astype(str))
        assert found.source == "file acs_income_part.parquet"
    np.testing.assert_array_equal(expected["acs_race"].viewpoint, np.where(whole["RAC1P"] == 1, 1, -1))


def test_acs_income_that_is_another_table_is_refused(tmp_path):
    path = tmp_path / "acs_income.csv"
    acs_frame().drop(columns="SEX").to_csv(path, index=False)
    with pytest.raises(
        InvalidInputError, match=r"must have the 11 columns of acs_income\.csv. Got a file without 'SEX'"
    ):
        load("acs_income", data_home=tmp_path)
    for cell in ("old", 1.5, None):
        acs_frame().assign(AGEP=cell).to_csv(path, index=False)
        with pytest.raises(InvalidInputError, match=r"'AGEP' of .* must hold whole numbers. Got .* in row 0"):
            load("acs_income", data_home=tmp_path)
    path.write_bytes(b"")
    with pytest.raises(InvalidInputError, match="must be a whole CSV file"):
        load("acs_income", data_home=tmp_path)


# ---------------------------------------------------------------- names and options


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            ("iris",),
            {},
            "'name' must be one of 'acs_income', 'acs_race', 'adult', 'bank', 'diabetes', 'dutch', 'german', 'news', "
            "'synthetic'. "
            "Got 'iris'. Use one of these names.",
        ),
        (
            ("adult", "binary"),
            {},
            "'coding' must be one of 'nominal', 'one-hot', 'raw'. Got 'binary'. Use one of these names.",
        ),
        (("adult",), {"n": 5}, "'n' must be given for 'synthetic' only. Got it for 'adult'. Remove 'n'."),
        (
            ("synthetic",),
            {"path": "x"},
            "'path' must be given for 'dutch' and 'news' only. Got it for 'synthetic'. Remove 'path'.",
        ),
        (
            ("synthetic",),
            {"n": 0},
            "'n' must be a whole number, at least 1. Got 0. Give the number of samples to draw.",
        ),
        (
            ("synthetic",),
            {"n": 2.5},
            "'n' must be a whole number, at least 1. Got 2.5. Give the number of samples to draw.",
        ),
    ],
)
def test_bad_arguments_are_one_clear_sentence(arguments, options, message):
    with pytest.raises(InvalidInputError) as caught:
        load(*arguments, **options)
    assert str(caught.value) == message
    assert isinstance(caught.value, UnknownNameError) == ("one of" in message)


def test_names_are_those_of_the_design():
    assert {"synthetic", "diabetes", "adult", "german", "bank", "dutch"} < set(names())
