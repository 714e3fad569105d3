"""The replay memory against a list of whole transitions, each with frames of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynaboltz.deep import AgentConfig
from dynaboltz.deep.batch import Batch
from dynaboltz.deep.replay import Replay, slots_per_environment
from dynaboltz.deep.stacker import Stacker
from dynaboltz.envs.spec import Spec, Step
from dynaboltz.errors import UserError

DISCOUNT = 0.5
Key = tuple[Any, ...]


@dataclass
class Naive:
    """Episodes of one environment as plain lists; frames are numbers that never repeat."""

    episodes: list[dict[str, Any]] = field(default_factory=list)

    def begin(self, frame: int) -> None:
        self.episodes.append({"frames": [frame], "steps": [], "over": False})

    def add(self, action: int, reward: float, final: int, *, terminal: bool, over: bool) -> None:
        episode = self.episodes[-1]
        episode["frames"].append(final)
        episode["steps"].append((action, reward, terminal))
        episode["over"] = over

    def transitions(self, stack: int, n_step: int) -> dict[int, Key]:
        """By their first frame: (stack, action, return, discount, next stack)."""
        found: dict[int, Key] = {}
        for episode in self.episodes:
            frames, steps = episode["frames"], episode["steps"]

            def stacked(at: int, frames: list[int] = frames) -> tuple[int, ...]:
                return tuple(frames[i] if i >= 0 else 0 for i in range(at - stack + 1, at + 1))

            for t in range(len(steps)):
                total, factor, k, ended = 0.0, 1.0, 0, False
                while k < n_step and t + k < len(steps) and not ended:
                    _, reward, ended = steps[t + k]
                    total += factor * reward
                    factor *= DISCOUNT
                    k += 1
                if k < n_step and not ended and not episode["over"]:
                    continue
                following = None if ended else stacked(t + k)
                found[frames[t]] = (stacked(t), steps[t][0], total, 0.0 if ended else factor, following)
        return found


@dataclass
class Play:
    """The same steps into the memory and into the lists."""

    replay: Replay
    naive: list[Naive]
    frame: int = 0

    def next_frame(self) -> int:
        self.frame += 1
        return self.frame

    def begin(self) -> None:
        for env, naive in enumerate(self.naive):
            first = self.next_frame()
            assert not self.replay.begin(env, np.array([first], np.float32))
            naive.begin(first)

    def step(self, kinds: list[str]) -> None:
        for env, (naive, kind) in enumerate(zip(self.naive, kinds, strict=True)):
            final = self.next_frame()
            terminal, over = kind in ("terminal", "life"), kind in ("terminal", "truncated")
            action, reward = final % 3, float(final % 7)
            naive.add(action, reward, final, terminal=terminal, over=over)
            following = self.next_frame() if over else final
            self.replay.add(
                env, action, reward, np.array([following], np.float32), terminal=terminal, over=over,
                final=np.array([final], np.float32),
            )  # fmt: skip
            if over:
                naive.begin(following)


def make(
    *, stack: int, n_step: int, n_envs: int = 1, capacity: int = 64, size: int = 16, prioritised: bool = False
) -> Play:
    spec = Spec(shape=(1,), dtype="float32", n_actions=3, stack=stack)
    config = AgentConfig(
        discount=DISCOUNT, n_step=n_step, replay_capacity_steps=capacity, replay_start_steps=16, batch_size=size,
        prioritised=prioritised, priority_exponent=1.0,
    )  # fmt: skip
    return Play(Replay(config, spec, n_envs, seed=0), [Naive() for _ in range(n_envs)])


def drawn(play: Play, *, stack: int, rounds: int, size: int = 16, importance: float = 0.0) -> list[Key]:
    batch = Batch.empty(size, Spec(shape=(1,), dtype="float32", n_actions=3, stack=stack))
    rows: list[Key] = []
    for _ in range(rounds):
        play.replay.sample(batch, importance)
        for j in range(size):
            following = tuple(batch.next_inputs[j, :, 0]) if batch.discount[j] else None
            key = (tuple(batch.inputs[j, :, 0]), int(batch.action[j]), batch.reward[j], batch.discount[j], following)
            rows.append((*key, int(batch.slot[j]), float(batch.importance[j])))
    return rows


KINDS = st.sampled_from(["go", "go", "go", "terminal", "truncated", "life"])


@settings(max_examples=60, deadline=None)
@given(data=st.data(), stack=st.integers(1, 4), n_step=st.integers(1, 4), n_envs=st.integers(1, 2), full=st.booleans())
def test_replay_holds_exactly_the_whole_transitions_of_the_lists(
    data: st.DataObject, stack: int, n_step: int, n_envs: int, full: bool
) -> None:
    """Whatever ends where: what is sampled is one of them, and (in a memory that is not full) every one is sampled."""
    steps = data.draw(st.integers(n_step + 1, 40 if full else 12))
    play = make(stack=stack, n_step=n_step, n_envs=n_envs, capacity=16 * n_envs if full else 64)
    play.begin()
    for _ in range(steps):
        play.step([data.draw(KINDS) for _ in range(n_envs)])
    expected: dict[int, Key] = {}
    for naive in play.naive:
        expected |= naive.transitions(stack, n_step)
    seen = set()
    for row in drawn(play, stack=stack, rounds=20):
        first = int(row[0][-1])
        assert row[:5] == expected[first]
        seen.add(first)
    if not full:
        assert seen == set(expected)


def test_replay_at_a_truncation_bootstraps_from_the_true_last_frame() -> None:
    """Frames 1 → 2, cut; the next episode begins with 3: the bootstrap is at 2 and no row goes from 2 to 3."""
    play = make(stack=1, n_step=1)
    play.begin()
    play.step(["truncated"])
    play.step(["go"])
    play.step(["go"])
    rows = {(row[0][0], row[4]) for row in drawn(play, stack=1, rounds=10)}
    assert rows == {(1, (2,)), (3, (4,)), (4, (5,))}


def test_replay_truncated_within_n_steps_discounts_by_the_steps_there_were() -> None:
    play = make(stack=1, n_step=3)
    play.begin()
    play.step(["go"])
    play.step(["truncated"])
    play.step(["go"])
    play.step(["go"])
    play.step(["go"])
    rows = {row[0][0]: row for row in drawn(play, stack=1, rounds=10)}
    assert rows[1][2:5] == (2 + 0.5 * 3, 0.25, (3,))
    assert rows[2][2:5] == (3.0, 0.5, (3,))


def test_replay_is_uniform_over_what_it_holds() -> None:
    play = make(stack=2, n_step=2, n_envs=2, capacity=40)
    play.begin()
    rng = np.random.default_rng(0)
    for _ in range(100):
        play.step([str(kind) for kind in rng.choice(["go", "go", "go", "truncated"], 2)])
    rows = [int(row[0][-1]) for row in drawn(play, stack=2, rounds=1000)]
    counts = np.unique(rows, return_counts=True)[1]
    expected = 16_000 / len(counts)
    assert 25 <= len(counts) <= 40
    assert ((counts - expected) ** 2 / expected).sum() < 2 * len(counts)


def test_replay_samples_in_proportion_to_priorities_and_corrects_for_it() -> None:
    play = make(stack=1, n_step=1, prioritised=True)
    play.begin()
    for _ in range(4):
        play.step(["go"])
    play.replay.update(np.arange(4), np.array([1.0, 2.0, -3.0, 4.0]))
    rows = drawn(play, stack=1, rounds=500, importance=0.5)
    slots, counts = np.unique([row[5] for row in rows], return_counts=True)
    np.testing.assert_array_equal(slots, np.arange(4))
    np.testing.assert_allclose(counts / len(rows), [0.1, 0.2, 0.3, 0.4], atol=0.005)
    weight = {row[5]: row[6] for row in rows}
    np.testing.assert_allclose(weight[3] / weight[1], (4 / 2) ** -0.5, rtol=1e-5)


def test_replay_gives_new_transitions_the_largest_priority() -> None:
    play = make(stack=1, n_step=1, prioritised=True)
    play.begin()
    play.step(["go"])
    play.replay.update(np.array([0]), np.array([9.0]))
    play.step(["go"])
    assert play.replay.tree is not None
    leaves = play.replay.tree[len(play.replay.tree) // 2 :]
    np.testing.assert_allclose(leaves[:3], [9, 9, 0], rtol=1e-6)


@settings(max_examples=30, deadline=None)
@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=33), share=st.floats(0, 0.999999))
def test_sum_tree_finds_the_leaf_of_the_running_sum(values: list[float], share: float) -> None:
    from dynaboltz.deep.replay import tree_size
    from dynaboltz.deep.replay_rows import find, put

    tree = np.zeros(tree_size(len(values)))
    for leaf, value in enumerate(values):
        put(tree, leaf, value)
    assert tree[1] == pytest.approx(sum(values))
    mass = share * tree[1]
    leaf = find(tree, mass)
    if tree[1] > 0:
        assert sum(values[:leaf]) <= mass * (1 + 1e-9) + 1e-9
        assert sum(values[: leaf + 1]) >= mass * (1 - 1e-9) - 1e-9


@pytest.mark.parametrize("prioritised", [False, True])
@pytest.mark.parametrize("steps", [5, 50])
def test_replay_restored_samples_the_same(steps: int, prioritised: bool) -> None:
    rng = np.random.default_rng(1)
    play = make(stack=3, n_step=2, n_envs=2, capacity=40, prioritised=prioritised)
    play.begin()
    for _ in range(steps):
        play.step([str(kind) for kind in rng.choice(["go", "truncated", "terminal"], 2, p=[0.8, 0.1, 0.1])])
    tree = {key: _copy(value) for key, value in play.replay.state().items()}
    other = make(stack=3, n_step=2, n_envs=2, capacity=40, prioritised=prioritised)
    other.replay.restore(tree)
    other.frame = play.frame
    for naive in other.naive:
        naive.begin(0)
    for _ in range(3):
        assert drawn(other, stack=3, rounds=5, importance=0.4) == drawn(play, stack=3, rounds=5, importance=0.4)
        for each in (play, other):
            each.step(["go", "truncated"])


def _copy(value: Any) -> Any:
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return np.array(value) if isinstance(value, np.ndarray) else value


def test_replay_state_of_a_young_memory_is_small_and_shares_its_frames() -> None:
    play = make(stack=1, n_step=1)
    play.begin()
    play.step(["go"])
    saved = play.replay.state()["frames"][0]
    assert saved.shape == (2, 1)
    assert np.shares_memory(saved, play.replay.frames)


def test_replay_episode_that_does_not_go_on_after_a_restore_is_cut() -> None:
    """Frames 1 → 2 → 3, and then the environment stands at 99: 2 → 3 is a truncation, and nothing leads to 99."""
    play = make(stack=2, n_step=1)
    play.begin()
    play.step(["go"])
    play.step(["go"])
    assert play.replay.begin(0, np.array([3.0], np.float32))
    assert not play.replay.begin(0, np.array([99.0], np.float32))
    play.frame = 99
    play.step(["go"])
    play.step(["go"])
    rows = {(row[0], row[4]) for row in drawn(play, stack=2, rounds=10)}
    assert rows == {((0, 1), (1, 2)), ((1, 2), (2, 3)), ((0, 99), (99, 100)), ((99, 100), (100, 101))}


def test_replay_too_small_for_its_environments_is_refused() -> None:
    config = AgentConfig(replay_capacity_steps=64, replay_start_steps=64, n_step=5)
    with pytest.raises(UserError, match="replay_capacity_steps"):
        slots_per_environment(config, Spec(shape=(1,), dtype="float32", n_actions=2, stack=4), 8)


def test_stacker_shows_what_the_replay_stores() -> None:
    """Frames older than the episode are 0 in both."""
    spec = Spec(shape=(1,), dtype="float32", n_actions=2, stack=3)
    stacker = Stacker(2, spec)
    stacker.begin(np.array([[1.0], [10.0]], np.float32))

    def push(frames: list[float], over: list[bool]) -> list[list[float]]:
        observation = np.array(frames, np.float32)[:, None]
        flags = np.array(over)
        stacker.push(Step(observation, np.zeros(2), flags, flags, observation))
        stacks: list[list[float]] = stacker.inputs[..., 0].tolist()
        return stacks

    assert push([2, 11], [False, False]) == [[0, 1, 2], [0, 10, 11]]
    assert push([3, 20], [False, True]) == [[1, 2, 3], [0, 0, 20]]
    assert push([4, 21], [False, False]) == [[2, 3, 4], [0, 20, 21]]
