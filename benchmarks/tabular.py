"""Steps per second of DBS Q-learning on the paper's grid, beside what else one could write: make bench-tabular.

Everything runs in this process, one after the other, several times; the best of each is shown. On a shared machine the
steps per second of CPU time are what to look at, and the ratios are theirs. All learn the same thing: 10 × 10 grid with our walls, ε-greedy with ε = 0.1, random ties,
α = 0.1, γ = 0.9, episodes cut off at 300 steps, boltzmann with β = t² of episode t.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from dynaboltz.mdp import MDP, build_world, to_gymnasium
from dynaboltz.tabular import Learning, agent, learn

HERE = Path(__file__).parent
WORLD = build_world("paper_grid")
CONFIG = agent("dbs")


def best(times: int, run: Any) -> tuple[float, float]:
    """The most steps a second of wall time, and of CPU time, over some runs."""
    wall = cpu = 0.0
    for _ in range(times):
        began, spent = time.perf_counter(), time.process_time()
        steps = run()
        wall = max(wall, steps / (time.perf_counter() - began))
        cpu = max(cpu, steps / (time.process_time() - spent))
    return wall, cpu


def ours(config: Learning, seeds: int, threads: int) -> int:
    return int(learn(WORLD, config, seeds=seeds, threads=threads).total_steps.sum())


def deterministic(model: MDP) -> tuple[Any, Any]:
    """Next state (~t where t is terminal) and reward of each pair, for the loops written by hand."""
    target = model.next_state.astype(np.int32)
    after, reward = np.zeros((model.n_states, 4), np.int32), np.zeros((model.n_states, 4))
    after[model.row_states(), model.action] = np.where(model.terminal[target], ~target, target)
    reward[model.row_states(), model.action] = model.reward
    return after, reward


def c_loop(seeds: int, folder: Path) -> Any:
    """The same loop in C, nothing more: the limit."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        return None
    library = folder / "loop.so"
    source = HERE / "tabular_loop.c"
    subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source], check=True)
    run = ctypes.CDLL(str(library)).learn
    run.restype = ctypes.c_long
    after, reward = deterministic(WORLD)

    def pointer(array: Any) -> Any:
        return array.ctypes.data_as(ctypes.c_void_p)

    def loop() -> int:
        total, steps = 0, np.zeros(CONFIG.episodes, np.int32)
        for seed in range(seeds):
            q = np.zeros((WORLD.n_states, 4))
            total += run(
                pointer(q), pointer(after), pointer(reward), CONFIG.episodes, CONFIG.max_steps, ctypes.c_double(0.1),
                ctypes.c_double(0.1), ctypes.c_double(0.9), ctypes.c_uint64(seed), pointer(steps),
            )  # fmt: skip
        return total

    return loop


def numpy_loop(episodes: int) -> int:
    """What a tutorial does: a NumPy table, one Gymnasium environment."""
    env, rng = to_gymnasium(WORLD, max_steps=CONFIG.max_steps), np.random.default_rng(0)
    q, total = np.zeros((WORLD.n_states, 4)), 0
    for episode in range(1, episodes + 1):
        state, _ = env.reset(seed=episode)
        over, beta = False, float(episode**2)
        while not over:
            row = q[state]
            action = int(rng.integers(4) if rng.random() < 0.1 else rng.choice(np.flatnonzero(row == row.max())))
            target, reward, terminated, truncated, _ = env.step(action)
            weights = np.exp(beta * (q[target] - q[target].max()))
            value = 0.0 if terminated else weights @ q[target] / weights.sum()
            q[state, action] += 0.1 * (reward + 0.9 * value - q[state, action])
            state, over, total = target, terminated or truncated, total + 1
    return total


def jax_scan(seeds: int, steps: int) -> Any:
    """All seeds in one vmapped scan over steps, compiled by XLA; None where JAX is not installed."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    after, reward = deterministic(WORLD)
    after, reward = jnp.asarray(after), jnp.asarray(reward, jnp.float32)

    def step(carry: Any, key: Any) -> Any:
        q, state, n, episode = carry
        first, second, third = jax.random.uniform(key, (3,))
        row = q[state]
        tied = row == row.max()
        among = jnp.where(first < 0.1, jnp.ones(4, bool), tied)
        wanted = jnp.floor(second * among.sum()).astype(jnp.int32)
        action = jnp.argmax(jnp.cumsum(among) > wanted)
        target = after[state, action]
        ended = target < 0
        target = jnp.where(ended, ~target, target)
        row = q[target]
        weights = jnp.exp(episode * episode * (row - row.max()))
        value = jnp.where(ended, 0.0, (weights * row).sum() / weights.sum())
        q = q.at[state, action].add(0.1 * (reward[state, action] + 0.9 * value - q[state, action]))
        over = ended | (n + 1 == CONFIG.max_steps)
        return (q, jnp.where(over, 0, target), jnp.where(over, 0, n + 1), episode + over), third

    def one(key: Any) -> Any:
        carry = (jnp.zeros((WORLD.n_states, 4)), 0, 0, jnp.float32(1))
        return jax.lax.scan(step, carry, jax.random.split(key, steps))[0][0]

    run = jax.jit(jax.vmap(one))
    keys = jax.random.split(jax.random.key(0), seeds)
    run(keys).block_until_ready()

    def loop() -> int:
        run(keys).block_until_ready()
        return seeds * steps

    return loop


def show(name: str, wall: float, cpu: float, reference: float) -> None:
    print(f"{name:<52} {wall / 1e6:>9.3f} {cpu / 1e6:>12.3f} {cpu / reference:>9.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=5, help="runs of each, of which the best counts")
    parser.add_argument("--seeds", type=int, default=200, help="seeds of a run")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for threads in (1, cores):
        ours(CONFIG, 4, threads)  # compile
    print(
        f"the paper's grid, {options.seeds} seeds × {CONFIG.episodes} episodes; {cores} cores, load {os.getloadavg()[0]:.1f}"
    )
    print(f"{'':<52} {'M steps/s':>9} {'M per CPU s':>12} {'× ours':>9}")
    single = best(options.times, lambda: ours(CONFIG, options.seeds, 1))
    show("dynaboltz, one core", *single, single[1])
    both = best(options.times, lambda: ours(CONFIG, options.seeds, cores))
    show(f"dynaboltz, {cores} cores", *both, single[1])
    print(f"  {cores} cores against one, in wall time: {both[0] / single[0]:.2f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        limit = c_loop(options.seeds, Path(folder))
        if limit is not None:
            show("C loop, one core (the limit)", *best(options.times, limit), single[1])
    scan = jax_scan(64, 5000)
    if scan is not None:
        show(f"JAX, 64 seeds in a vmapped scan, {cores} cores, float32", *best(2, scan), single[1])
    show("NumPy table, one Gymnasium environment", *best(1, lambda: numpy_loop(60)), single[1])
    show("TableAgent on the same environment", *best(1, stepped), single[1])
    for name, changes in OTHERS.items():
        config = agent(name, **changes)
        ours(config, 1, 1)
        show(f"  {name}: {config.summary or config.rule}", *best(2, lambda c=config: ours(c, 50, 1)), single[1])
    began = time.perf_counter()
    total = ours(agent("dbs", episodes=1000), 1000, cores)
    spent = time.perf_counter() - began
    print(f"1,000 seeds × 1,000 episodes of DBS Q-learning in one call: {total:,} steps in {spent:.2f} s")


OTHERS: dict[str, dict[str, Any]] = {
    "q": {}, "double_q": {}, "sarsa": {}, "expected_sarsa": {}, "soft_q": {}, "g_learning": {}, "mellowmax": {},
}  # fmt: skip


def stepped() -> int:
    return int(learn(lambda: to_gymnasium(WORLD), agent("dbs", episodes=60)).total_steps.sum())


if __name__ == "__main__":
    main()
