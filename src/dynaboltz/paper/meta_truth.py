"""What a meta-gradient must be: ∂J′/∂ψ by autograd through the optimiser's step, and by finite differences.

Written from the definitions alone: the loss, four optimisers and a network, in float64, and nothing of
:mod:`dynaboltz.deep` but the numbers it starts from.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.errors import MissingExtraError

if TYPE_CHECKING:
    from dynaboltz.deep.batch import Batch
    from dynaboltz.deep.learner import Learner

STEP = 1e-4
"""Of the finite differences, in ψ: so small that a kink of the loss or of the network seldom lies within it."""
HUBER_BOUND = 1.0


def torch_or_missing() -> Any:
    """The module torch, or an error that names the extra that brings it."""
    try:
        import torch
    except ImportError as fault:
        raise MissingExtraError("torch", "deep", "the derivative by autograd") from fault
    return torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Tensors this small take longer on two threads than on one."""
    torch = torch_or_missing()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Truth:
    """One update as a function of ψ = log c, from the state that a learner is in before it makes it."""

    def __init__(self, learner: Learner, *, optimiser: str, loss: str) -> None:
        self.torch = torch_or_missing()
        parameters = learner.parameters
        self.optimiser, self.loss, self.rate = optimiser, loss, parameters.rate
        self.online, self.target, self.first, self.second = (
            self.torch.tensor(np.array(flat))
            for flat in (parameters.online, parameters.target, parameters.first, parameters.second)
        )
        self.weights = [(piece.start, piece.stop, piece.shape) for piece in parameters.layout.pieces]
        self.number = parameters.updates + 1

    def values(self, flat: Any, inputs: np.ndarray) -> Any:
        """Action values of a network of dense layers with max(0, ·) between them."""
        x = self.torch.tensor(inputs.reshape(len(inputs), -1).astype(np.float64))
        arrays = [flat[start:stop].reshape(shape) for start, stop, shape in self.weights]
        for i, (weight, bias) in enumerate(zip(arrays[::2], arrays[1::2], strict=True)):
            x = (self.torch.relu(x) if i else x) @ weight.T + bias
        return x

    def objective(self, flat: Any, batch: Batch, beta: Any) -> Any:
        """The mean loss of the weights ``flat`` on a batch, against the target network under β."""
        torch = self.torch
        following = self.values(self.target, batch.next_inputs)
        shares = torch.softmax(beta * following, -1)
        targets = torch.tensor(batch.reward) + torch.tensor(batch.discount) * (shares * following).sum(-1)
        taken = self.values(flat, batch.inputs)[torch.arange(len(batch.action)), torch.tensor(batch.action)]
        size = (targets - taken).abs()
        if self.loss == "squared":
            return (size**2 / 2).mean()
        return torch.where(size < HUBER_BOUND, size**2 / 2, HUBER_BOUND * (size - HUBER_BOUND / 2)).mean()

    def step(self, batch: Batch, beta: Any) -> Any:
        """θ′, with the graph that leads back to β; roots are taken where there is something to take them of."""
        torch, k = self.torch, self.number
        theta = self.online.clone().requires_grad_()
        (g,) = torch.autograd.grad(self.objective(theta, batch, beta), theta, create_graph=beta.requires_grad)

        def root(x: Any) -> Any:
            return torch.where(x > 0, torch.sqrt(torch.where(x > 0, x, 1.0)), 0.0)

        if self.optimiser == "sgd":
            move = g
        elif self.optimiser == "rmsprop":
            move = g / (root(0.99 * self.second + 0.01 * g * g) + 1e-8)
        elif self.optimiser == "deepmind_rmsprop":
            mean = 0.95 * self.first + 0.05 * g
            move = g / root(0.95 * self.second + 0.05 * g * g - mean**2 + 0.01)
        else:
            mean = (0.9 * self.first + 0.1 * g) / (1 - 0.9**k)
            move = mean / (root((0.999 * self.second + 0.001 * g * g) / (1 - 0.999**k)) + 1e-8)
        return self.online - self.rate * move

    def after(self, psi: Any, first: Batch, second: Batch, power: float, bar: float) -> Any:
        """J′(ψ): the loss on the second batch, under c̄, of the weights that the update on the first one leads to."""
        return self.objective(self.step(first, self.torch.exp(psi) * power), second, bar)

    def by_autograd(self, psi: float, *rest: Any) -> float:
        """∂J′/∂ψ."""
        variable = self.torch.tensor(psi, dtype=self.torch.float64, requires_grad=True)
        (derivative,) = self.torch.autograd.grad(self.after(variable, *rest), variable)
        return float(derivative)

    def by_differences(self, psi: float, *rest: Any) -> float:
        """∂J′/∂ψ to the fourth order in ``STEP``."""

        def at(steps: int) -> float:
            shifted = self.torch.tensor(psi + steps * STEP, dtype=self.torch.float64)
            return float(self.after(shifted, *rest).detach())

        return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * STEP)
