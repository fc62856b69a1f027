r"""From a text file to numbers: reading tables, what their columns mean, and coding them as a saved recipe.

>>> from nerm.tables.reading import parse_table
>>> table = parse_table("age,sex,income\n31,f,low\n?,m,high\n", "example")
>>> table.names, table["age"].tolist()
(('age', 'sex', 'income'), ['31', '?'])
"""

from nerm.tables.model import TableModel, load_model
from nerm.tables.reading import Table, parse_table, read_table
from nerm.tables.recipe import Recipe, learn_recipe, nominal_columns
from nerm.tables.roles import Role, Task, make_task

__all__ = [
    "Recipe",
    "Role",
    "Table",
    "TableModel",
    "Task",
    "learn_recipe",
    "load_model",
    "make_task",
    "nominal_columns",
    "parse_table",
    "read_table",
]
