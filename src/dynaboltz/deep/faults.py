"""What goes wrong in training: a number that is not finite, by name and update."""

from __future__ import annotations

from dynaboltz.errors import DynaboltzError


class NonFinite(DynaboltzError):  # noqa: N818 - named for what it says
    """A reward, observation, loss, gradient, weight, β or c is not a finite number; nothing after it can be trusted."""

    def __init__(self, what: str, value: float, update: int, step: int) -> None:
        self.what, self.value, self.update, self.step = what, value, update, step
        super().__init__(
            f"{what} is {value} at update {update:,}, agent step {step:,}\n"
            "  a smaller learning_rate, a finite gradient_clip or a reward_clip may keep it finite"
        )
