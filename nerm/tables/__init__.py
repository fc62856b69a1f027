r"""Read tables from files, assign roles to their columns, and code the columns as numbers.

>>> from nerm.tables.reading import parse_table
>>> table = parse_table("age,sex,income\n31,f,low\n?,m,high\n", "example")
>>> table.names, table["age"].tolist()
(('age', 'sex', 'income'), ['31', '?'])

Names are imported when they are first used, so that a mistyped column is told at once; __init__.pyi lists
them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
