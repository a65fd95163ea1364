"""From a query to hits: the heuristic scorer, vectors, their fusion, and the prefetch with its budget."""
