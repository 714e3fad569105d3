"""A run turns a config into rows: trained, resumed, evaluated and kept, the same for the same settings."""

from dynaboltz.runs.config import Evaluation, RunConfig, Saving, resolve
from dynaboltz.runs.digest import digest
from dynaboltz.runs.evaluate import Evaluated, evaluate
from dynaboltz.runs.layout import Home, home_of, read_config
from dynaboltz.runs.progress import Progress, Watch
from dynaboltz.runs.rows import Row, Rows, read_rows
from dynaboltz.runs.session import RunWarning
from dynaboltz.runs.settings import Given
from dynaboltz.runs.sinks import SinkWarning
from dynaboltz.runs.train import Result, resume, train

__all__ = [
    "Evaluated",
    "Evaluation",
    "Given",
    "Home",
    "Progress",
    "Result",
    "Row",
    "Rows",
    "RunConfig",
    "RunWarning",
    "Saving",
    "SinkWarning",
    "Watch",
    "digest",
    "evaluate",
    "home_of",
    "read_config",
    "read_rows",
    "resolve",
    "resume",
    "train",
]
