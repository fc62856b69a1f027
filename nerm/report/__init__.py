"""The trade-off between quality and neutrality on a table: numbers, a figure, and a page."""
