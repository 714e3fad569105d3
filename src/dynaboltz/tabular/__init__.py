"""Tabular learning: Q-learning and its relatives with any summary, thousands of seeds in one compiled call.

An agent is a :class:`Learning`, a frozen description with a text form for every part; ``AGENTS`` are the well-known
ones, and :func:`agent` makes one with changes:

    agent(name="dbs", **changes) -> Learning       # names: AGENTS; changes: any field of Learning
    Learning(rule="q_learning", summary="boltzmann(beta=power(2))", clock="episode", discount=0.9, episodes=500,
             max_steps=300, epsilon=0.1, epsilon_clock="episode", step_size="constant(0.1)", initial="zeros",
             ties="random", mask_terminal=True, prior="uniform")

:func:`learn` runs it:

    learn(world, config, *, seeds=1, root=0, optimum=None, marks=(), stop_error=None, threads=None, progress=None,
          checkpoint=None, checkpoint_seconds=60.0, resume=False) -> Learned

``world`` is an MDP with a start distribution (compiled), or a function that makes a Gymnasium environment with Discrete
spaces (the same agent, step by step in Python). ``seeds`` is how many, or which: ``learn(w, c, seeds=1000)`` and
``learn(w, c, seeds=[37])`` give seed 37 the same bits, on any number of threads. With ``optimum`` (Q*, states ×
actions) the sup-norm error ‖Q − Q*‖ is noted at the steps ``marks`` of each seed, and a seed ends at the first mark
whose error is at most ``stop_error``. :class:`Learned` holds ``steps`` and ``returns`` (seeds × episodes), ``q``
(seeds × states × actions), ``visits``, ``errors`` (seeds × marks), ``first_within(error)``, ``policy()``, ``digest()``.

Every clock counts from 1: in its first episode, at its first step, on the first visit of a pair, t is 1.

>>> from dynaboltz.mdp import build_world
>>> result = learn(build_world("chain(states=4)"), agent("dbs", episodes=50, discount=0.5), seeds=3)
>>> result.steps.shape, result.policy()[0].tolist()
((3, 50), [1, 1, 1, -1])
"""

from __future__ import annotations

from dynaboltz.tabular.agents import AGENTS, agent
from dynaboltz.tabular.engine import learn
from dynaboltz.tabular.forms import INITIALS, STEP_SIZES
from dynaboltz.tabular.outcome import DivergedError, Learned, Progress
from dynaboltz.tabular.rules import RULES
from dynaboltz.tabular.settings import CLOCKS, EPSILON_CLOCKS, TIES, Learning
from dynaboltz.tabular.state import Shape
from dynaboltz.tabular.table import TableAgent

__all__ = [
    "AGENTS",
    "CLOCKS",
    "EPSILON_CLOCKS",
    "INITIALS",
    "RULES",
    "STEP_SIZES",
    "TIES",
    "DivergedError",
    "Learned",
    "Learning",
    "Progress",
    "Shape",
    "TableAgent",
    "agent",
    "learn",
]
