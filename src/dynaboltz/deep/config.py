"""What an agent is told: one frozen record, checked when it is made, without importing torch.

A DQN, a double DQN, DBS-DQN, S-DQN or Munchausen DQN is a value of this record, not a class of its own.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property

from dynaboltz.deep.checks import CHECKS, period
from dynaboltz.errors import UserError
from dynaboltz.operators import Operator, boltzmann, hard_max, log_sum_exp, mean
from dynaboltz.operators.averages import EpsilonMixture
from dynaboltz.schedules import Capped, Power, Schedule, parse_schedule
from dynaboltz.summaries import Dynamic, Summary, parse_summary


@dataclass(frozen=True, slots=True)
class Period:
    """How many of what: ``Period(2500, "updates")``."""

    count: int
    unit: str
    """``"steps"`` (agent decisions, over all environments) or ``"updates"`` (gradient steps)."""

    def __str__(self) -> str:
        """The text that parses back to this period."""
        return f"{self.count} {self.unit}"


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """Every hyper-parameter of the agent; a wrong one is refused at once, by name.

    >>> AgentConfig(summary="boltzmann(beta=power(2))", target_period="500 steps").parsed_target_period
    Period(count=500, unit='steps')
    """

    summary: str = "hard_max"
    """State value in the target: an operator with its β, for instance ``boltzmann(beta=power(2, c=1))``."""
    beta_clock: str = "target_sync"
    """What t counts, from 1, in β_t: ``target_sync``, ``update``, ``step`` or ``episode``."""
    double: bool = False
    """Weights over next actions from the online network, values from the target network (DDQN, S-DDQN)."""
    munchausen: float = 0.0
    """Share of the scaled log-policy added to the reward (Vieillard et al. 2020); 0 is off. Needs log_sum_exp."""
    munchausen_lowest: float = -1.0
    """The scaled log-policy is clipped to at least this."""

    discount: float = 0.99
    """γ, from 0 to 1."""
    n_step: int = 1
    """Rewards summed before the bootstrap."""
    reward_clip: float = math.inf
    """Rewards are clipped to ± this in the learner; reported returns never are. ``inf`` is off."""

    network: str = "mlp"
    """``mlp``, ``minatar``, ``nature`` or ``package.module:factory``, called as ``factory(spec, n_actions)``."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of each hidden layer of the ``mlp`` network."""
    initialisation: str = "torch"
    """``torch``: uniform within ±1/√fan_in, as in the Lua code of Mnih et al.; ``he``: He-uniform, biases 0."""
    duelling: bool = False
    """Streams for the state's value and the actions' advantages from the last hidden layer on (Wang et al. 2016)."""
    noisy: float = 0.0
    """σ₀ of the noise in dense layers, which explores in place of ε (Fortunato et al. 2018); 0 is off."""
    atoms: int = 1
    """Atoms of each action's distribution of returns (Bellemare, Dabney & Munos 2017); 1 is off: means alone."""
    value_range: tuple[float, float] = (-10.0, 10.0)
    """Returns of the first and the last atom; what lies outside counts as lying there."""
    dtype: str = "float32"
    """``float32`` or ``float64``: of weights, activations and targets."""
    autocast: str = "off"
    """``bfloat16``: convolutions and matrix products in bfloat16, the rest in dtype; or ``off``."""
    engine: str = "auto"
    """``compiled``: our own passes for mlp and minatar on a CPU; ``torch``: autograd; ``auto``: what is fastest."""
    threads: int = 1
    """Threads of one agent's tensor work. One is fastest for small networks; run several seeds side by side."""
    overlap: bool = False
    """Update in a thread of its own while the agent acts, with the weights of before that update; the thread that acts
    helps when it is done. Each of the two uses ``threads``: on two cores 1 is fastest."""

    optimiser: str = "adam"
    """``adam(...)``, ``rmsprop(...)``, ``deepmind_rmsprop(...)`` or ``sgd``, with their own settings in brackets."""
    learning_rate: float = 1e-3
    """Step size of the optimiser."""
    loss: str = "huber"
    """``huber`` (error clipped to ±huber_bound) or ``squared`` (½ error²)."""
    huber_bound: float = 1.0
    """Error at which the Huber loss becomes linear."""
    loss_reduction: str = "mean"
    """``mean`` over the batch, or ``sum`` as in the Lua code of Mnih et al."""
    gradient_clip: float = math.inf
    """Largest norm of the whole gradient; ``inf`` is off."""

    batch_size: int = 32
    """Transitions of one update."""
    replay_capacity_steps: int = 100_000
    """Agent steps held in the replay memory, over all environments."""
    replay_start_steps: int = 1_000
    """Agent steps before the first update; until then actions are uniformly random."""
    prioritised: bool = False
    """Sample in proportion to past errors (Schaul et al. 2016) instead of uniformly."""
    priority_exponent: float = 0.6
    """Power of the absolute error that is a transition's priority."""
    importance: str = "0.4"
    """Exponent of the importance weights: a number or a schedule over agent steps."""
    train_period_steps: int = 1
    """Agent steps between trainings."""
    train_updates: int = 1
    """Gradient steps of one training."""
    target_period: str = "500 steps"
    """Between copies into the target network: ``10000 steps``, ``2500 updates``, or ``none`` for no target network."""
    epsilon: str = "piecewise(((0, 1), (10000, 0.05)))"
    """ε of ε-greedy acting: a number or a schedule over agent steps."""

    c_learning: str = "off"
    """Learn c of β_t = c·t^p: ``corrected`` (closed form), ``as_printed`` (the paper's formula) or ``off``."""
    c_bar: str = "fixed"
    """Reference in the meta-objective: ``fixed`` (c̄ = c_reference), ``current`` (c̄ = c) or ``infinity`` (maximum)."""
    c_reference: float = 0.0
    """c̄ under the ``fixed`` policy; 0 stands for the initial c."""
    c_learning_rate: float = 1e-3
    """Step size of the meta-update: of ψ = log c where corrected, of c itself where as printed."""
    c_optimiser: str = "adam"
    """Optimiser of ψ: ``adam(...)`` or ``sgd``. As printed, c takes plain gradient steps."""
    c_largest_step: float = 0.1
    """Largest change of log c in one update."""
    c_derivative: str = "exact"
    """Derivative of the optimiser's step by the gradient: ``exact`` or ``frozen`` (preconditioner held constant)."""
    c_trace: float = 0.0
    """μ of the trace z ← μ z + dθ/dψ (Xu et al. 2018), from 0 (last update only) to 1."""
    c_period_updates: int = 1
    """Every so many updates c is learned: from what ψ does to one and what that is worth in the next; then μ is a
    period's. In between an update is that of an agent with a fixed c."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = CHECKS[field.name](field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, value)
        self._check_together()

    @cached_property
    def parsed_summary(self) -> Summary:
        """The summary as an object."""
        return parse_summary(self.summary, "summary")

    @cached_property
    def parsed_epsilon(self) -> Schedule:
        """ε as a schedule."""
        return parse_schedule(_number_or_spec(self.epsilon), "epsilon")

    @cached_property
    def parsed_importance(self) -> Schedule:
        """The importance exponent as a schedule."""
        return parse_schedule(_number_or_spec(self.importance), "importance")

    @cached_property
    def parsed_target_period(self) -> Period | None:
        """The target period, or None without a target network."""
        found = period("target_period", self.target_period)
        return None if found is None else Period(*found)

    @property
    def head(self) -> tuple[str, ...]:
        """Which of ``duelling``, ``noisy`` and ``atoms`` are on."""
        on = {"duelling": self.duelling, "noisy": self.noisy > 0, "atoms": self.atoms > 1}
        return tuple(name for name, is_on in on.items() if is_on)

    @property
    def power(self) -> Power:
        """The power t ↦ c·t^p that β follows, for an agent that learns c."""
        schedule = self.parsed_summary.schedule if isinstance(self.parsed_summary, Dynamic) else None
        inner = schedule.schedule if isinstance(schedule, Capped) else schedule
        if self.parsed_summary.operator != boltzmann or not isinstance(inner, Power) or not inner.c > 0:
            raise UserError(
                "c_learning: learns c of boltzmann(beta=power(p, c=...)) with c above 0, "
                f"got summary {self.summary!r}\n"
                "  write summary='boltzmann(beta=power(2))', or capped(power(2), 1e6) for β, or c_learning='off'"
            )
        return inner

    @property
    def largest_beta(self) -> float:
        """Where β is capped, for an agent that learns c."""
        schedule = self.parsed_summary.schedule if isinstance(self.parsed_summary, Dynamic) else None
        return schedule.largest if isinstance(schedule, Capped) else math.inf

    def _check_together(self) -> None:
        """Refuse what is wrong only in combination."""
        for name in ("parsed_summary", "parsed_epsilon", "parsed_importance", "parsed_target_period"):
            getattr(self, name)
        _check_range("epsilon", self.parsed_epsilon)
        _check_range("importance", self.parsed_importance)
        summary = self.parsed_summary
        for t in (1, 2, 1_000, 10**9):
            beta = summary.beta(t)
            if beta is not None and (not beta >= 0 or (beta == 0 and not summary.operator.traits.finite_at_zero)):
                raise UserError(f"summary: beta of {self.summary!r} must be above 0 at every t, got {beta} at t = {t}")
        if self.munchausen and summary.operator != log_sum_exp:
            raise UserError(
                f"munchausen: the log-policy is that of log_sum_exp, got summary {self.summary!r}\n"
                "  write summary='log_sum_exp(33.333)' (a temperature of 0.03), or munchausen=0"
            )
        if self.munchausen and self.double:
            raise UserError("double: Munchausen takes weights and values from the target network; write double=False")
        if self.c_learning != "off":
            if self.power.c and self.target_period == "none" and self.beta_clock == "target_sync":
                raise UserError("beta_clock: without a target network target_sync never ticks; write update or step")
            if self.c_bar != "fixed" and self.c_reference:
                raise UserError(f"c_reference: only the fixed policy of c_bar has one, got {self.c_reference}")
        elif isinstance(summary, Dynamic) and self.target_period == "none" and self.beta_clock == "target_sync":
            raise UserError("beta_clock: without a target network target_sync never ticks; write update or step")
        self._check_head()
        self._check_sizes()
        if self.overlap and self.train_updates > 1:
            raise UserError(
                f"overlap: one update runs beside acting, got train_updates {self.train_updates}; write train_updates=1"
            )
        if self.engine == "compiled" and (self.network not in ("mlp", "minatar") or self.autocast != "off"):
            raise UserError(
                f"engine: compiled passes exist for mlp and minatar without autocast, got network {self.network!r} "
                f"and autocast {self.autocast!r}\n  write engine='auto'"
            )

    def _check_head(self) -> None:
        """Refuse what streams, noise and atoms do not go with."""
        on = " and ".join(self.head)
        if self.head and ":" in self.network:
            raise UserError(
                f"network: {self.network} brings its own layers, so {on} cannot be put into it\n"
                "  take network='mlp', 'minatar' or 'nature', or leave out what is named"
            )
        if self.head and self.engine == "compiled":
            raise UserError(f"engine: compiled has no {on}; write engine='auto' or engine='torch'")
        if self.c_learning == "as_printed" and (self.noisy or self.atoms > 1):
            raise UserError(
                f"c_learning: the paper's formula knows no noise and no atoms, got noisy {self.noisy:g} and atoms "
                f"{self.atoms}; write c_learning='corrected'"
            )
        if self.atoms == 1:
            if self.value_range != AgentConfig.value_range:
                raise UserError(
                    f"value_range: only atoms have one, got {self.value_range} with atoms 1; write atoms=51"
                )
            return
        operator = self.parsed_summary.operator
        if not is_mixture(operator):
            raise UserError(
                f"summary: with atoms the backup is a mixture of the actions' distributions, and {operator.name} is no "
                "weighted mean of action values\n  write a summary of hard_max, boltzmann, mean or epsilon_mixture, "
                "or atoms=1"
            )
        if (self.loss, self.huber_bound) != (AgentConfig.loss, AgentConfig.huber_bound):
            raise UserError(
                f"loss: with atoms it is the Kullback-Leibler divergence, got loss {self.loss!r} and huber_bound "
                f"{self.huber_bound:g}; leave both as they are"
            )

    def _check_sizes(self) -> None:
        """Refuse a replay memory that holds too little."""
        if self.batch_size > self.replay_start_steps:
            raise UserError(
                f"replay_start_steps: must be at least batch_size ({self.batch_size}), got {self.replay_start_steps}"
            )
        if self.replay_start_steps > self.replay_capacity_steps:
            raise UserError(
                f"replay_capacity_steps: must be at least replay_start_steps ({self.replay_start_steps}), "
                f"got {self.replay_capacity_steps}"
            )
        if self.n_step >= self.replay_start_steps:
            raise UserError(f"n_step: must be below replay_start_steps ({self.replay_start_steps}), got {self.n_step}")


def is_mixture(operator: Operator) -> bool:
    """Whether the operator's value is the mean of the action values under its weights, for every row.

    >>> is_mixture(boltzmann), is_mixture(log_sum_exp)
    (True, False)
    """
    return operator in (hard_max, mean, boltzmann) or isinstance(operator, EpsilonMixture)


def _number_or_spec(value: str) -> str | float:
    try:
        return float(value)
    except ValueError:
        return value


def _check_range(name: str, schedule: Schedule) -> None:
    for t in (0, 1, 100, 10_000, 10**6, 10**9):
        if not 0 <= schedule(t) <= 1:
            raise UserError(f"{name}: must stay from 0 to 1, got {schedule(t):g} at step {t} of {schedule}")
