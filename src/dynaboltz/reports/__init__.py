"""A report turns rows into claims: scores, statistics, curves, tables, figures and self-contained pages."""
