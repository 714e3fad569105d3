"""A run turns a config into rows: trained, resumed, evaluated and kept, the same for the same settings."""

from dynaboltz.runs.config import Evaluation, RunConfig, Saving, resolve
from dynaboltz.runs.layout import Home, home_of, read_config
from dynaboltz.runs.rows import Row, Rows, read_rows
from dynaboltz.runs.settings import Given

__all__ = [
    "Evaluation",
    "Given",
    "Home",
    "Row",
    "Rows",
    "RunConfig",
    "Saving",
    "home_of",
    "read_config",
    "read_rows",
    "resolve",
]
