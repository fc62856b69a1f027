"""What pytest must not import here: the configuration of Sphinx."""

collect_ignore = ["conf.py"]
