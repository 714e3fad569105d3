"""A study turns a grid of configs into runs: each once, resumed after any interruption, on one machine or a cluster.

A TOML file says what the runs share and what they differ in; an executor works them off; their folders, and a ledger
beside them, say what is done. A killed driver loses nothing: the next one does what is left.

>>> from dynaboltz.studies import parse_study
>>> study = parse_study(
...     {"seeds": "0..2", "axes": {"env": ["CartPole-v1", "Acrobot-v1"], "preset": ["dqn", "dbs-dqn"]}},
...     "an example", default_name="example",
... )
>>> len(study.configs), study.configs[1].env, study.configs[1].name
(12, 'CartPole-v1', 'dbs-dqn')
"""

from dynaboltz.studies.drive import Driver, Task
from dynaboltz.studies.executors import TABLE as EXECUTORS
from dynaboltz.studies.executors import make_executor
from dynaboltz.studies.ledger import Ledger, read_ledger
from dynaboltz.studies.pack import Pack, pack
from dynaboltz.studies.place import Place
from dynaboltz.studies.study import Study, label, parse_study, read_study, select

__all__ = [
    "EXECUTORS",
    "Driver",
    "Ledger",
    "Pack",
    "Place",
    "Study",
    "Task",
    "label",
    "make_executor",
    "pack",
    "parse_study",
    "read_ledger",
    "read_study",
    "select",
]
