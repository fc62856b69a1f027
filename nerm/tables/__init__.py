r"""From a file to numbers: reading tables, what their columns mean, and coding them as a saved recipe.

>>> from nerm.tables.reading import parse_table
>>> table = parse_table("age,sex,income\n31,f,low\n?,m,high\n", "example")
>>> table.names, table["age"].tolist()
(('age', 'sex', 'income'), ['31', '?'])
"""

from nerm.tables.reading import TextTable as TextTable
from nerm.tables.reading import parse_table as parse_table
from nerm.tables.reading import read_parts as read_parts
from nerm.tables.reading import read_table as read_table
from nerm.tables.reading import table_of as table_of
from nerm.tables.recipe import Recipe as Recipe
from nerm.tables.recipe import learn_recipe as learn_recipe
from nerm.tables.roles import Role as Role
from nerm.tables.roles import TableTask as TableTask
from nerm.tables.roles import make_task as make_task
from nerm.tables.roles import survey as survey
from nerm.tables.table_model import TableModel as TableModel
from nerm.tables.table_model import load_model as load_model
