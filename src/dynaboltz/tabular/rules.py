"""Learning rules: what stands for the value of the next state in ``Q(s, a) ← (1 − α) Q(s, a) + α (r + γ value)``.

A rule is one class here and its line in ``RULES``. Its ``code`` returns a function of compiled code,
``value(form, q, own, other, row, m, like, beta, action, epsilon)``, where ``form`` is the rule's named tuple, ``q``
holds the tables one after the other, ``own`` and ``other`` are where the table to update and the other one begin,
``row`` is where the next state's row of ``m`` actions begins in each, ``like`` is a register of its width if it fills
one, ``action`` is the next action (if the rule carries it) and ``epsilon`` the ε of the next choice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, final

from dynaboltz.errors import UserError
from dynaboltz.operators import boltzmann, epsilon_mixture, hard_max, mean, mellowmax
from dynaboltz.operators.operator import Operator

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

QLearningForm = namedtuple("QLearningForm", "summary")
DoubleForm = namedtuple("DoubleForm", "summary")
SarsaForm = namedtuple("SarsaForm", "none")
ExpectedSarsaForm = namedtuple("ExpectedSarsaForm", "none")
GLearningForm = namedtuple("GLearningForm", "prior")


class Rule(ABC):
    """One learning rule."""

    name: ClassVar[str]
    form: ClassVar[Any]
    """The named tuple by whose type compiled code knows the rule."""
    summary: ClassVar[str | None]
    """The summary if none is given; None if the rule takes none."""
    tables: ClassVar[int] = 1
    """How many tables it learns; it acts on their sum."""
    carries: ClassVar[bool] = False
    """Whether the next action is chosen before the update, and then taken."""
    takes_prior: ClassVar[bool] = False

    @classmethod
    def check(cls, operator: Operator) -> None:
        """Refuse an operator that the rule cannot use; most can use any."""
        assert isinstance(operator, Operator), "checked by the summary"

    @classmethod
    def fill(cls, parameters: Any, prior: npt.NDArray[np.float64]) -> Any:  # noqa: ARG003
        """The form with the operator's parameters or the prior over actions in it."""
        return cls.form(parameters)

    @staticmethod
    @abstractmethod
    def code() -> Callable[..., Any]:
        """The compiled function of the module's docstring."""


@final
class QLearning(Rule):
    """``op_β(Q(s', ·))``: Watkins (1989) with the maximum, Algorithm 1 of Pan et al. (2020) with boltzmann.

    With log_sum_exp it is soft Q-learning, with mellowmax that of Asadi & Littman (2017).
    """

    name: ClassVar[str] = "q_learning"
    form: ClassVar[Any] = QLearningForm
    summary: ClassVar[str | None] = "hard_max"

    @staticmethod
    def code() -> Callable[..., Any]:
        """See the module."""
        from dynaboltz.tabular.rows import summary_value

        def value(form, q, own, other, row, m, like, beta, action, epsilon):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
            return summary_value(form.summary, q, own + row, m, like, beta)

        return value


@final
class DoubleQLearning(Rule):
    """``Σ_a w_a Q_B(s', a)`` with op's weights w at Q_A(s', ·); a fair coin says which table is A and is updated.

    van Hasselt (2010) with the maximum, whose weights are uniform over ties; Song et al. (2019) with a fixed β.
    """

    name: ClassVar[str] = "double_q_learning"
    form: ClassVar[Any] = DoubleForm
    summary: ClassVar[str | None] = "hard_max"
    tables: ClassVar[int] = 2

    @classmethod
    def check(cls, operator: Operator) -> None:
        """Only averages have weights that can be applied to another table."""
        averages = (hard_max, mean, boltzmann)
        if operator not in averages and not isinstance(operator, epsilon_mixture):
            raise UserError(
                f"double_q_learning applies weights from one table to the other, and {operator.name} is no average\n"
                "  its summary must be hard_max, mean, boltzmann or epsilon_mixture"
            )

    @staticmethod
    def code() -> Callable[..., Any]:
        """See the module."""
        from dynaboltz.tabular.rows import weighted_value

        def value(form, q, own, other, row, m, like, beta, action, epsilon):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
            return weighted_value(form.summary, q, own + row, other + row, m, beta)

        return value


@final
class Sarsa(Rule):
    """``Q(s', a')``, where a' is the action that is taken next (Rummery & Niranjan 1994)."""

    name: ClassVar[str] = "sarsa"
    form: ClassVar[Any] = SarsaForm
    summary: ClassVar[str | None] = None
    carries: ClassVar[bool] = True

    @staticmethod
    def code() -> Callable[..., Any]:
        """See the module."""

        def value(form, q, own, other, row, m, like, beta, action, epsilon):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
            return q[own + row + action]

        return value


@final
class ExpectedSarsa(Rule):
    """``(1 − ε) max Q(s', ·) + ε mean Q(s', ·)``, with the ε of the next choice (van Seijen et al. 2009)."""

    name: ClassVar[str] = "expected_sarsa"
    form: ClassVar[Any] = ExpectedSarsaForm
    summary: ClassVar[str | None] = None

    @staticmethod
    def code() -> Callable[..., Any]:
        """See the module."""
        from dynaboltz.tabular.rows import greedy_value

        def value(form, q, own, other, row, m, like, beta, action, epsilon):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
            return greedy_value(q, own + row, m, epsilon)

        return value


@final
class GLearning(Rule):
    """``(1/β) log Σ_a ρ(a) e^{β Q(s', a)}``: G-learning with the prior ρ (Fox et al. 2016, Eq. 18, for rewards).

    With a uniform prior it is Q-learning with mellowmax. The paper's β_t is k·t, ``mellowmax(beta=linear(k))``.
    """

    name: ClassVar[str] = "g_learning"
    form: ClassVar[Any] = GLearningForm
    summary: ClassVar[str | None] = "mellowmax(beta=linear(0.001))"
    takes_prior: ClassVar[bool] = True

    @classmethod
    def check(cls, operator: Operator) -> None:
        """Its operator is mellowmax under the prior."""
        if operator != mellowmax:
            raise UserError(
                f"g_learning is mellowmax under a prior, got the operator {operator.name}\n"
                "  set its beta: summary='mellowmax(beta=linear(0.001))'"
            )

    @classmethod
    def fill(cls, parameters: Any, prior: npt.NDArray[np.float64]) -> Any:  # noqa: ARG003
        """The form with the prior in it."""
        return cls.form(prior)

    @staticmethod
    def code() -> Callable[..., Any]:
        """See the module."""
        from dynaboltz.tabular.rows import prior_value

        def value(form, q, own, other, row, m, like, beta, action, epsilon):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
            return prior_value(form.prior, q, own + row, m, beta)

        return value


RULES: dict[str, type[Rule]] = {
    entry.name: entry for entry in (QLearning, DoubleQLearning, Sarsa, ExpectedSarsa, GLearning)
}
"""Learning rules by their name in text."""
