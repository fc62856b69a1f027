"""Download and prepare the Adult (census income) data set."""

import gzip
import os
from io import BytesIO
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pandas as pd
import scipy.sparse as sp

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data"
COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "years",
    "marital",
    "occupation",
    "relationship",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "country",
    "income",
]


def load_adult() -> pd.DataFrame:
    """Return the 32,561 rows of adult.data, from the folder NERM_DATA if it is set, else from UCI."""
    if "NERM_DATA" in os.environ:
        text = gzip.decompress((Path(os.environ["NERM_DATA"]) / "adult" / "adult.data.gz").read_bytes())
    else:
        with urlopen(URL) as answer:
            text = answer.read()
    frame = pd.read_csv(BytesIO(text), names=COLUMNS, skipinitialspace=True, comment="|")
    return frame.dropna(subset=["income"])


def adult_rows(seed: int, rows: int) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Return features, labels (income above 50K) and viewpoint (sex), both -1 or +1, of some rows.

    Numbers are cut into five quantiles, then every column is coded one-hot.
    """
    frame = load_adult().sample(rows, random_state=seed)
    inputs = frame.drop(columns=["income", "sex", "fnlwgt"])
    for name in inputs.select_dtypes("number"):
        inputs[name] = pd.qcut(inputs[name].rank(method="first"), 5, labels=False)
    coded = pd.get_dummies(inputs.astype(str)).to_numpy(dtype=float)
    y = np.where(frame["income"].str.startswith(">50K"), 1.0, -1.0)
    viewpoint = np.where(frame["sex"] == "Male", 1.0, -1.0)
    return sp.csr_array(coded), y, viewpoint
