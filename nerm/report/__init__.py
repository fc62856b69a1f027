"""The trade-off between quality and neutrality on a table, as numbers, a figure and an HTML page.

Names are imported when they are first used, so that `nerm --help` is quick; __init__.pyi lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
