r"""Read tables from files, assign roles to their columns, and code the columns as numbers.

>>> from nerm.tables.reading import parse_table
>>> table = parse_table("age,sex,income\n31,f,low\n?,m,high\n", "example")
>>> table.names, table["age"].tolist()
(('age', 'sex', 'income'), ['31', '?'])
"""

from nerm.tables.reading import TextTable, parse_table, read_parts, read_table, table_of
from nerm.tables.recipe import Recipe, learn_recipe
from nerm.tables.roles import Role, TableTask, make_task, survey
from nerm.tables.table_model import TableModel, load_model

__all__ = [
    "Recipe",
    "Role",
    "TableModel",
    "TableTask",
    "TextTable",
    "learn_recipe",
    "load_model",
    "make_task",
    "parse_table",
    "read_parts",
    "read_table",
    "survey",
    "table_of",
]
