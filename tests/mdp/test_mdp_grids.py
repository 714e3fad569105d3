"""Grid worlds: the paper's numbers, and the vectorised builder against the loop anyone would write."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dynaboltz.mdp import MDP, build_world
from dynaboltz.mdp.grids import BLOCK
from dynaboltz.mdp.worlds.grids import grid, paper_grid

MOVES = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1)}
MAZE = """
S.#.
.#.H
...G
"""


def optimal_values(mdp: MDP, gamma: float, sweeps: int) -> npt.NDArray[np.float64]:
    p, r = mdp.to_arrays()
    available = p.any(axis=2)
    v = np.zeros(mdp.n_states)
    for _ in range(sweeps):
        v = np.where(available, r + gamma * p @ v, -np.inf).max(axis=1)
        v[mdp.terminal] = 0.0
    return v


def by_hand(text: str, slip: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """P[S, A, S] and R[S, A] of a map, cell by cell and move by move."""
    rows = text.strip().split("\n")
    cells = [(i, j) for i, row in enumerate(rows) for j, mark in enumerate(row) if mark != "#"]
    p, r = np.zeros((len(cells), 4, len(cells))), np.zeros((len(cells), 4))
    for s, (i, j) in enumerate(cells):
        if rows[i][j] in "GH":
            continue
        for a in range(4):
            for turn, chance in ((0, 1 - slip), (1, slip / 2), (3, slip / 2)):
                down, right = MOVES[(a + turn) % 4]
                target = (i + down, j + right) if (i + down, j + right) in cells else (i, j)
                p[s, a, cells.index(target)] += chance
                r[s, a] += chance * (rows[target[0]][target[1]] == "G")
    return p, r


@pytest.mark.parametrize("slip", [0.0, 0.2, 2 / 3, 1.0])
@pytest.mark.parametrize("text", ["\n".join(["S...."] + ["....."] * 3 + ["....G"]), MAZE, "SG", "G\nS\nH"])
def test_mdp_grid_equals_the_naive_loop(text: str, slip: float) -> None:
    p, r = MDP.from_text(text, slip=slip).to_arrays()
    expected_p, expected_r = by_hand(text, slip)
    assert np.allclose(p, expected_p, atol=1e-15)
    assert np.array_equal(p > 0, expected_p > 0)
    assert np.allclose(r, expected_r, atol=1e-15)


def test_mdp_grid_blocks_join_without_a_seam() -> None:
    """The builder's first block ends inside the second row of this grid; going up must look the same on both sides."""
    wide = grid(rows=3, cols=BLOCK * 2 // 3, slip=0.2)
    for state in range(BLOCK - 2, BLOCK + 2):
        row = wide.state_ptr[state]
        reached = wide.next_state[wide.row_ptr[row] : wide.row_ptr[row + 1]] - state
        assert reached.tolist() == [-(BLOCK * 2 // 3), -1, 1]


def test_mdp_grid_of_90_000_states_is_regular_inside() -> None:
    big = grid(rows=300, cols=300, slip=0.2)
    assert (big.n_states, big.n_rows) == (90_000, 4 * 89_999)
    lengths = np.diff(big.row_ptr)
    assert np.count_nonzero(lengths == 3) == big.n_rows - np.count_nonzero(lengths == 2)
    # Only in three corners do a blocked move and a blocked slip fall together, in two of the four actions each.
    assert np.count_nonzero(lengths == 2) == 3 * 2
    assert np.allclose(big.to_scipy() @ np.ones(big.n_states), 1.0, atol=1e-15)


def test_mdp_grid_float32_holds_the_same_chances() -> None:
    single, double = grid(slip=0.2, precision="float32"), grid(slip=0.2)
    assert single.probability.dtype == np.float32
    assert np.array_equal(single.next_state, double.next_state)
    assert np.array_equal(single.probability, double.probability.astype(np.float32))


def test_mdp_paper_grid_without_walls_has_the_papers_value() -> None:
    values = optimal_values(paper_grid(walls="empty"), 0.9, 60)
    assert values[0] == pytest.approx(0.9**17, rel=1e-12)
    assert abs(values[0] - 0.16677) < 5e-6


def test_mdp_paper_grid_has_interleaved_walls_by_default() -> None:
    world = paper_grid()
    assert world.grid is not None
    walls = {(int(i), int(j)) for i, j in np.argwhere(world.grid.walls)}
    assert walls == {(i, 3) for i in range(7)} | {(i, 6) for i in range(3, 10)}
    assert world.n_states == 86


def test_mdp_paper_grid_with_walls_is_28_moves_long() -> None:
    values = optimal_values(paper_grid(), 0.9, 60)
    assert values[0] == pytest.approx(0.9**27, rel=1e-12)
    assert abs(values[0] - 0.05815) < 5e-6


def test_mdp_paper_grid_max_value_iteration_is_exact_after_28_sweeps_not_before() -> None:
    world = paper_grid()
    exact = optimal_values(world, 0.9, 100)
    assert np.array_equal(optimal_values(world, 0.9, 28), exact)
    assert not np.array_equal(optimal_values(world, 0.9, 27), exact)


def test_mdp_grid_pays_for_entering_the_goal_only() -> None:
    line = MDP.from_text("S.G")
    paid = line.next_state[line.row_ptr[:-1]] == 2
    assert line.reward.tolist() == paid.astype(float).tolist()
    assert paid.sum() == 1


def test_mdp_grid_transition_rewards_say_which_outcome_paid() -> None:
    slippery = MDP.from_text("S.G", slip=0.5)
    assert slippery.transition_reward is not None
    assert np.array_equal(slippery.transition_reward, (slippery.next_state == 2).astype(float))


def test_mdp_grid_starts_uniformly_over_the_start_cells() -> None:
    start = MDP.from_text("S.SG").start
    assert start is not None
    assert start.tolist() == [0.5, 0.0, 0.5, 0.0]
    assert MDP.from_text("..G").start is None


def test_mdp_grid_random_walls_follow_the_seed_and_the_share() -> None:
    worlds = [build_world(f"grid(rows=100, cols=100, walls=0.3, seed={seed})") for seed in (0, 0, 1)]
    assert worlds[0].equals(worlds[1])
    assert not worlds[0].equals(worlds[2])
    assert 0.27 < 1 - worlds[0].n_states / 10_000 < 0.33
