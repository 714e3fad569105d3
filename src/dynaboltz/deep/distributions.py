"""The target function where each action has a distribution of returns over K atoms z_1 … z_K (C51 and its mixtures).

With x the means of the next action values (of the online network where double) and w the operator's weights at x,

    m = Φ( r + γⁿ Z ),   Z ~ Σ_a w_a Z(s′, a; θ⁻)          loss  KL(m ‖ Z(s, a; θ))

where Φ shares each mass between the two atoms around it (Bellemare, Dabney & Munos 2017, Eq. 7). For hard_max it is
C51's backup, with ties shared alike. For boltzmann it is the Boltzmann mixture over actions, ours: the mean of the
mixture is boltz_β(x), so inside the range of the atoms the means are backed up as by DBS. Both the mixture and Φ are
linear, hence ∂m/∂β = Φ(Σ_a w_a (x_a − boltz) Z(s′, a)), from which c is learned. KL, whose gradient by the logits is
Z(s, a) − m, is the priority too (Hessel et al. 2018).
"""

from __future__ import annotations

import numpy as np

from dynaboltz.deep.batch import Batch
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.target_rows import categorical_backup, categorical_reference
from dynaboltz.deep.targets import LARGEST, Targets


class Distributions(Targets):
    """Divergences, cotangents of logits and statistics of one batch after another.

    ``target`` is (B, K), ``error`` the divergences and ``cotangents`` (rows, B, K).
    """

    def __init__(self, config: AgentConfig, n_actions: int) -> None:
        super().__init__(config, n_actions)
        size, atoms = config.batch_size, config.atoms
        self.low, high = config.value_range
        self.step = (high - self.low) / (atoms - 1)
        self.support = self.low + self.step * np.arange(atoms)
        self.target = np.zeros((size, atoms))
        self.cotangents = np.zeros((len(self.cotangents), size, atoms), config.dtype)
        self._change = np.zeros(atoms)

    def __call__(
        self, batch: Batch, q: np.ndarray, following: np.ndarray, *, beta: float | None,
        online: np.ndarray | None = None, here: np.ndarray | None = None, slope: float = 0.0, bar: float | None = None,
    ) -> None:  # fmt: skip
        """Fill ``target``, ``error``, ``cotangents`` and ``counts``.

        Args:
            batch: the transitions.
            q: (B, A, K) online logits of the states.
            following: (B, A, K) probabilities at the next states, of the target network.
            beta: β of the summary, None if it has none.
            online: (B, A) online action values of the next states, for double weights.
            here: not used: Munchausen's summary is no mixture.
            slope: dβ/dψ, 0 where c is not learned or β is capped.
            bar: β under c̄, where the meta-objective is not the loss itself.
        """
        assert here is None
        own = self._own
        if self.double:
            assert online is not None
            own[...] = online
        else:
            np.matmul(following, self.support, out=own)
        weighting = self._weighting(0.0 if beta is None else min(beta, LARGEST))
        categorical_backup(
            batch.action, batch.reward, batch.discount, batch.importance, q, own, following, weighting, self._loss,
            self.low, self.step, slope, self._weights, self._change, self.target, self.error, self.cotangents,
            self.counts,
        )  # fmt: skip
        if bar is not None:
            categorical_reference(
                batch.reward, batch.discount, batch.importance, own, following, self._weighting(min(bar, LARGEST)),
                self._loss, self.low, self.step, self._weights, self._change, self.target, self.cotangents,
            )  # fmt: skip
