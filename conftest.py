"""What pytest must not collect: scripts that draw the documentation's figures."""

collect_ignore_glob = ["docs/figures/*.py"]
