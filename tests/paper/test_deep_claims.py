"""The claims on deep agents and on Atari measure what they say they measure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import tyro

from dynaboltz.cli.study import Options, pairs
from dynaboltz.deep import AgentConfig
from dynaboltz.deep.presets import PRESETS
from dynaboltz.envs import Spec
from dynaboltz.errors import MissingExtraError
from dynaboltz.paper import (
    CLAIMS,
    algorithm_2,
    algorithm_2_atari,
    atari_games,
    atari_runs,
    c_bar,
    no_ops,
    rainbow,
    seaquest_c,
)
from dynaboltz.paper.claim import Check, Evidence, Verdict
from dynaboltz.paper.deep_runs import Trained, band, binned, greedy_return, make_agent, train
from dynaboltz.paper.meta_gradient import PAPERS, Found, make_batch, make_learner, measure_setting
from dynaboltz.paper.meta_truth import Truth
from dynaboltz.paper.network_table import by_hand, shapes
from dynaboltz.reports.scores import paper_scores
from dynaboltz.reports.statistics import mean_interval
from dynaboltz.studies import Study, read_study, select
from dynaboltz.studies.executors import TABLE

ROOT = Path(__file__).parents[2]
CLUSTER = ("algorithm-2-atari", "seaquest-c", "atari-games", "atari-curves")


def open_check(of: str = "paper") -> Check:
    return Check(fact="over there", of=of, true=None)


def known(of: str, true: bool) -> Check:
    return Check(fact="here", of=of, true=true)


def verdict(*checks: Check, command: str = "dynaboltz") -> Verdict:
    return Evidence(finding="", settings={}, checks=checks, command=command).verdict


def test_open_statement_is_out_of_reach_if_nothing_that_was_tested_fails() -> None:
    assert verdict(open_check()) is Verdict.OUT_OF_REACH
    assert verdict(open_check(), known("paper", true=True), known("aside", true=False)) is Verdict.OUT_OF_REACH


def test_statement_that_fails_here_is_not_saved_by_one_that_is_open() -> None:
    assert verdict(open_check(), known("paper", true=False)) is Verdict.DOES_NOT_FOLLOW
    assert verdict(open_check(), known("paper", true=False), known("ours", true=True)) is Verdict.CORRECTED


def test_open_statement_and_the_command_that_decides_it_go_together() -> None:
    with pytest.raises(ValueError, match="go together"):
        verdict(open_check(), command="")
    with pytest.raises(ValueError, match="go together"):
        verdict(known("paper", true=True))


def test_statement_of_ours_cannot_be_open() -> None:
    with pytest.raises(ValueError, match="measured or not made"):
        verdict(open_check("ours"))


def study_of(command: str) -> tuple[Options, Study]:
    program, verb, *arguments = shlex.split(command)
    assert (program, verb) == ("dynaboltz", "study")
    options = tyro.cli(Options, args=arguments)
    assert options.file is not None
    return options, read_study(ROOT / options.file)


@pytest.mark.parametrize("name", CLUSTER)
def test_command_for_a_cluster_is_a_study_that_is_there(name: str, evidence: Callable[[str], Evidence]) -> None:
    found = evidence(name)
    assert found.verdict is Verdict.OUT_OF_REACH
    options, study = study_of(found.command)
    assert options.on in TABLE
    assert not pairs(options.option, "--option")
    assert select(study.configs, options.only)


def test_claims_on_atari_that_are_out_of_reach_are_these(evidence: Callable[[str], Evidence]) -> None:
    atari = [name for name, claim in CLAIMS.items() if claim.section == "atari"]
    assert {name for name in atari if evidence(name).verdict is Verdict.OUT_OF_REACH} == set(CLUSTER)


def test_studies_are_the_runs_that_the_claims_say() -> None:
    wanted = {
        "paper-atari": (len(paper_scores().games) * len(atari_runs.AGENTS) * atari_runs.SEEDS, atari_runs.STEPS),
        "six-curves": (len(atari_games.CURVES) * len(atari_runs.AGENTS) * atari_runs.SEEDS, atari_runs.STEPS),
        "seaquest-c": ((len(seaquest_c.COEFFICIENTS) + 2) * atari_runs.SEEDS, seaquest_c.STEPS),
    }
    for name, (runs, steps) in wanted.items():
        study = read_study(ROOT / "studies" / f"{name}.toml")
        assert len(study.configs) == runs, name
        assert {config.steps for config in study.configs} == {steps}, name
        for config in study.configs:
            found = config.evaluation
            assert (found.period_steps, found.episodes, found.max_steps) == (
                atari_runs.PERIOD, atari_runs.EPISODES, atari_runs.MOST,
            )  # fmt: skip
    options, study = study_of(algorithm_2_atari.COMMAND)
    assert len(select(study.configs, options.only)) == 2 * atari_runs.SEEDS


def test_agents_of_the_studies_are_those_that_are_tried() -> None:
    study = read_study(ROOT / "studies" / "paper-atari.toml")
    agents = {config.name: config.agent for config in study.configs}
    assert agents == {name: atari_runs.published(name) for name in atari_runs.AGENTS.values()}


def test_coefficients_of_the_study_are_those_of_the_claim() -> None:
    study = read_study(ROOT / "studies" / "seaquest-c.toml")
    fixed = {config.agent.summary for config in study.configs if config.name.startswith("dbs-dqn-c")}
    assert fixed == {f"boltzmann(beta=capped(power(2, c={c:g}), 1e6))" for c in seaquest_c.COEFFICIENTS}


def test_cost_is_steps_times_seconds() -> None:
    one = atari_runs.Tried(0.0864, 0.00864, 0, 1, 0, [], {})
    alone, most = one.days(1_000_000)
    assert alone == pytest.approx(1.0)
    assert most == pytest.approx(1.0 + 4 * 30 * 4500 * 1e-7)


def test_departure_from_the_published_settings_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert algorithm_2_atari.departures("dqn") == {}
    assert set(algorithm_2_atari.differences()) == algorithm_2_atari.OWN
    monkeypatch.setitem(PRESETS, "dqn-nature", lambda: PRESETS["ddqn-nature"](batch_size=64))
    assert algorithm_2_atari.departures("dqn") == {"batch_size": ("32", "64")}
    assert set(algorithm_2_atari.differences()) == {*algorithm_2_atari.OWN, "batch_size", "double"}


def test_table_of_the_network_in_numbers_by_hand() -> None:
    found = shapes(actions=18)
    assert found["convolution.1.weight"] == (64, 4, 4, 32)
    assert found["hidden.0.weight"] == (512, 7 * 7 * 64)
    assert sum(math.prod(shape) for shape in found.values()) == 1_693_362


def test_network_by_hand_is_torchs() -> None:
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape) * 0.05 for name, shape in shapes(actions=3).items()}
    screens = rng.integers(0, 256, (2, 4, 84, 84)).astype(np.uint8)
    x = torch.tensor(screens / 255.0)
    for i, stride in enumerate((4, 2, 1)):
        filters = torch.tensor(weights[f"convolution.{i}.weight"]).permute(0, 3, 1, 2)
        x = torch.relu(torch.nn.functional.conv2d(x, filters, torch.tensor(weights[f"convolution.{i}.bias"]), stride))
    x = x.permute(0, 2, 3, 1).flatten(1)
    x = torch.relu(x @ torch.tensor(weights["hidden.0.weight"]).T + torch.tensor(weights["hidden.0.bias"]))
    x = x @ torch.tensor(weights["output.weight"]).T + torch.tensor(weights["output.bias"])
    np.testing.assert_allclose(by_hand(screens, weights), x.numpy(), rtol=1e-10)


def test_truth_by_hand() -> None:
    """SGD, ½ error², one transition: dθ′/dψ is αγβ Var·∇Q, and J′ falls along −δ̄ ∇Q(s′, a′; θ′)."""
    learner = make_learner("sgd", "squared", seed=0, batch_size=1)
    rng = np.random.default_rng(1)
    first, second = make_batch(rng, 1), make_batch(rng, 1)
    first.discount[:] = second.discount[:] = 0.9
    truth = Truth(learner, optimiser="sgd", loss="squared")
    beta, bar = 1.2, 0.7
    following = truth.values(truth.target, first.next_inputs)[0].numpy()
    shares = np.exp(beta * (following - following.max()))
    shares /= shares.sum()
    variance = shares @ (following - shares @ following) ** 2

    def slope(flat: torch.Tensor, inputs: np.ndarray, action: int) -> np.ndarray:
        point = flat.clone().requires_grad_()
        (found,) = torch.autograd.grad(truth.values(point, inputs)[0, action], point)
        return np.asarray(found)

    change = truth.rate * 0.9 * beta * variance * slope(truth.online, first.inputs, int(first.action[0]))
    after = truth.step(first, torch.tensor(beta, dtype=torch.float64)).detach()
    ahead = truth.values(truth.target, second.next_inputs)[0].numpy()
    weights = np.exp(bar * (ahead - ahead.max()))
    target = second.reward[0] + 0.9 * (weights @ ahead) / weights.sum()
    error = target - float(truth.values(after, second.inputs)[0, int(second.action[0])])
    by_hand_ = -error * slope(after, second.inputs, int(second.action[0])) @ change
    found = truth.by_autograd(math.log(0.3), first, second, beta / 0.3, bar)
    assert found == pytest.approx(by_hand_, rel=1e-10)
    assert truth.by_differences(math.log(0.3), first, second, beta / 0.3, bar) == pytest.approx(by_hand_, rel=1e-6)


def test_agreement_counts_signs_and_error_is_relative() -> None:
    found = Found(np.array([1.0, -2.0]), np.zeros(2), {"as printed": np.array([3.0, 1.0])})
    assert found.agreement("as printed") == (1, 2)
    assert found.error("as printed").tolist() == [2.0, 1.5]


def test_single_transition_gives_the_printed_formula_another_size_and_the_same_sign() -> None:
    found = measure_setting(PAPERS, np.random.default_rng(0), 12, 1)
    ratio = found.forms["as printed"] / found.truth
    assert (ratio >= 0).all()
    assert ratio.std() > 0.1
    np.testing.assert_allclose(found.forms["corrected"], found.truth, rtol=1e-9)
    np.testing.assert_allclose(found.forms["right sample"], found.truth, rtol=1e-9)  # with SGD nothing is left out


def test_training_in_memory_sees_every_episode_and_every_row() -> None:
    config = algorithm_2.config(algorithm_2.FIXED)
    looked: list[int] = []
    run = train(config, algorithm_2.WORLD, seed=3, steps=700, every=100, watch=lambda agent: looked.append(agent.steps))
    assert looked == [row["step"] for row in run.rows] == [100, 200, 300, 400, 500, 600, 700]
    assert [end for end, _ in run.episodes] == np.cumsum([length for _, length in run.episodes]).tolist()
    assert np.isnan(run.column("beta")[:4]).all()
    assert run.column("beta")[4:].tolist() == [1.0, 4.0, 4.0]  # learning and the first sync are both due in step 500
    again = train(config, algorithm_2.WORLD, seed=3, steps=700, every=100)
    assert again.episodes == run.episodes


def test_greedy_return_is_a_mean_of_first_episodes() -> None:
    run = train(algorithm_2.config(algorithm_2.DQN), algorithm_2.WORLD, seed=1, steps=50, every=50)
    found = greedy_return(run.agent, algorithm_2.WORLD, seed=1, episodes=4)
    assert found == greedy_return(run.agent, algorithm_2.WORLD, seed=1, episodes=4)
    assert 1 <= found <= algorithm_2.CAP
    assert float(4 * found).is_integer()


def test_bins_are_means_and_an_empty_one_is_that_before() -> None:
    episodes = [(5, 2.0), (9, 4.0), (31, 7.0)]
    assert binned(episodes, np.array([0, 10, 20, 40])).tolist() == [3.0, 3.0, 7.0]


def test_band_is_the_interval_of_each_column() -> None:
    values = np.array([[1.0, 5.0], [2.0, 7.0], [3.0, 9.0]])
    mean, low, high = band(values)
    expected = mean_interval([5.0, 7.0, 9.0])
    assert (mean[1], low[1], high[1]) == (expected.value, expected.low, expected.high)


def test_sharp_is_where_the_softmax_is_the_maximum_to_a_thousandth() -> None:
    from dynaboltz import boltzmann

    row = np.zeros(18)
    row[0] = 0.01
    short = 0.01 - float(boltzmann(row, algorithm_2.SHARP))
    assert short == pytest.approx(0.01 * 1e-3, rel=0.01)
    assert seaquest_c.sharp(0.01) == algorithm_2.SHARP


def test_steps_until_a_beta_are_those_of_the_schedule() -> None:
    for c in seaquest_c.COEFFICIENTS:
        steps = seaquest_c.steps_until(100.0, c)
        syncs = 1 + (steps - algorithm_2.WARM_UP) / algorithm_2.SYNC_EVERY
        assert c * syncs**2 >= 100 > c * (syncs - 1) ** 2
    assert algorithm_2.sharp_after("target_sync") == seaquest_c.steps_until(algorithm_2.SHARP, 1.0)
    assert algorithm_2.sharp_after("step") < algorithm_2.WARM_UP
    assert math.isnan(algorithm_2.sharp_after("episode"))


def test_beta_to_the_letter_begins_anew_with_every_episode() -> None:
    assert algorithm_2.to_the_letter([(3, 3.0), (5, 2.0), (12, 7.0), (13, 1.0)]) == (9.0, 1.0)


def test_comparison_names_only_what_is_beyond_chance() -> None:
    rng = np.random.default_rng(0)
    level = {algorithm_2.DQN: 100, algorithm_2.FIXED: 100, algorithm_2.LEARNED: 130}
    scores = {name: rng.normal(mean, 5, 10) for name, mean in level.items()}
    found = algorithm_2.compare(scores, scores)
    assert {name for name, (_, p) in found.items() if p < 0.05} == {
        f"{algorithm_2.LEARNED}, greedy return at the end", f"{algorithm_2.LEARNED}, return of training episodes",
    }  # fmt: skip


def test_worth_of_the_optimal_policy_is_all_and_of_a_fixed_action_less() -> None:
    chances, rewards, best = c_bar.dynamics()
    np.testing.assert_allclose((rewards + c_bar.DISCOUNT * chances @ best).max(axis=1), best, rtol=1e-10)
    np.testing.assert_allclose(chances.sum(axis=-1), 1)
    states = np.arange(best.size)
    stuck = np.linalg.solve(np.eye(best.size) - c_bar.DISCOUNT * chances[states, 0], rewards[states, 0])
    run = train(c_bar.config(replay_start_steps=1000), f"mdp/{c_bar.WORLD}", seed=0, steps=10, every=10)
    assert stuck.mean() < best.mean()
    assert 0 < c_bar.worth(run.agent) < 100


def test_force_is_measured_while_c_stays() -> None:
    assert c_bar.force(1 / 16, seed=0, steps=600) > 0 > c_bar.force(math.inf, seed=0, steps=600)


def test_factor_is_paired_by_seed() -> None:
    def ended(c: float) -> Trained:
        agent = make_agent(AgentConfig(), spec=make_spec(), seed=0)
        return Trained(agent, rows=[{"step": 1.0, "c": c}])

    found = c_bar.factor([ended(2.0), ended(6.0)], [ended(1.0), ended(3.0)])
    assert (found.value, found.low, found.high) == pytest.approx((2.0, 2.0, 2.0))


def make_spec() -> Spec:
    return Spec(shape=(2,), dtype="float32", n_actions=2)


def test_noops_are_counted_by_the_emulator() -> None:
    counts, screens = no_ops.noops("Seaquest", 8, seed=0)
    assert counts.size == 8
    assert 1 <= counts.min() < counts.max() <= 30
    assert 1 <= screens <= 8


def test_uneven_noops_are_found_out() -> None:
    rng = np.random.default_rng(0)
    assert no_ops.spread(rng.integers(1, 31, 600)) > 1e-3
    assert no_ops.spread(rng.integers(1, 16, 600)) < no_ops.RARE


def test_another_epsilon_is_found_out() -> None:
    assert no_ops.chance(75, 2000, 0.0375) > no_ops.RARE
    assert no_ops.chance(150, 2000, 0.0375) < no_ops.RARE


def test_points_of_the_best_window_are_no_fewer_than_the_mean() -> None:
    found = no_ops.points("Atlantis", seed=0)
    assert found.best > found.total / no_ops.RULES.cap_frames > 0


@pytest.mark.parametrize("beta", [0.1, 3.0])
def test_mean_of_the_mixture_is_the_target_of_dbs(beta: float) -> None:
    found, wanted = rainbow.mean_of_backup(np.random.default_rng(2), beta)
    np.testing.assert_allclose(found, wanted, atol=1e-10)
    other, _ = rainbow.mean_of_backup(np.random.default_rng(2), 2 * beta)
    assert np.abs(other - wanted).max() > 1e-3


def test_agents_of_rainbow_differ_in_the_operator_alone() -> None:
    assert rainbow.apart() == algorithm_2_atari.OWN
    assert all(getattr(rainbow.config(rainbow.DBS), part) for part in rainbow.PARTS)


def test_missing_torch_is_an_error_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "dynaboltz.deep", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dynaboltz\[deep\]'"):
        make_agent(AgentConfig(), spec=make_spec(), seed=0)
