"""The interior-point method: blocks in, a hypothesis with dual variables out (`engine.Engine`)."""
