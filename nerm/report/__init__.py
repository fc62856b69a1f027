"""The trade-off between quality and neutrality on a table, as numbers, a figure and an HTML page."""
