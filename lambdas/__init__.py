"""One folder for each function: a thin handler that calls one service of ragstack_common."""
