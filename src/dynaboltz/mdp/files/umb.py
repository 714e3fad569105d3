"""UMB, the Unified Markov Binary format, through the package ``umbi``.

``umbi`` trusts the sizes it reads, so the archive is looked at first: how far it unpacks, and whether its index
promises no more states, choices and branches than its bytes can hold.
"""

from __future__ import annotations

import bz2
import gzip
import importlib
import json
import lzma
import tarfile
import tempfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from dynaboltz.errors import MissingExtraError, UnknownNameError, UserError
from dynaboltz.files import opened, replacing
from dynaboltz.mdp.arrays import Floats
from dynaboltz.mdp.files.choices import Choices, from_choices, to_choices

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

EXPANSION, ALLOWANCE, INDEX_LIMIT = 100, 1 << 24, 1 << 20
OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


def write(mdp: MDP, path: Path) -> None:
    """Write ``mdp`` with one reward, ``reward``."""
    umb, binary, datatypes = _umbi("umb"), _umbi("binary"), _umbi("datatypes")
    choices = to_choices(mdp, path)
    double = binary.SizedType.for_type(datatypes.NumericPrimitiveType.DOUBLE)
    boolean = binary.SizedType.for_type(datatypes.PrimitiveType.BOOL)
    action = np.zeros(len(choices.names), np.int64)
    action[~np.repeat(mdp.terminal, np.diff(choices.choice_ptr))] = mdp.action
    version = _umbi("version")
    described = umb.index.AnnotationDescription
    index = umb.index.UmbIndex(
        format_version=version.__format_version__,
        format_revision=version.__format_revision__,
        transition_system=umb.index.TransitionSystem(
            num_players=1,
            num_states=mdp.n_states,
            num_initial_states=int(np.count_nonzero(choices.init)),
            num_choices=action.size,
            num_choice_actions=mdp.n_actions,
            num_branches=choices.target.size,
            branch_probability_type=double,
        ),
        annotations={
            "rewards": {"reward": described(alias="reward", applies_to=["choices"], type=double)},
            "aps": {"deadlock": described(alias="deadlock", applies_to=["states"], type=boolean)},
        },
    )
    explicit = umb.ExplicitUmb(
        index=index,
        state_is_initial=choices.init.tolist(),
        state_to_choices=choices.choice_ptr.tolist(),
        choice_to_branches=choices.branch_ptr.tolist(),
        branch_to_target=choices.target.tolist(),
        branch_to_probability=choices.probability.tolist(),
        choice_to_choice_action=action.tolist(),
        choice_action_to_string=list(choices.actions) if choices.actions is not None else None,
        annotations={
            "rewards": {"reward": {"choices": choices.reward.tolist()}},
            "aps": {"deadlock": {"states": choices.deadlock.tolist()}},
        },
    )
    with tempfile.TemporaryDirectory() as directory:
        whole = Path(directory) / "model.umb"
        umb.write(explicit, whole)
        with replacing(path) as file:
            file.write(whole.read_bytes())


def read(path: Path, reward: str | None = None) -> MDP:
    """The MDP in ``path``, with the reward ``reward``, which may be left out if there is but one."""
    _look_first(path)
    umb = _umbi("umb")
    try:
        explicit = umb.read(path)
    except Exception as fault:  # umbi checks by assertion and by whatever its decoders raise
        raise UserError(f"{path} is not a readable UMB file: {type(fault).__name__}: {str(fault)[:300]}") from fault
    system = explicit.index.transition_system
    if system.time != "discrete" or system.num_players != 1 or explicit.branch_to_probability is None:
        raise UserError(f"{path}: an MDP is needed: discrete time, one player, probabilities on the branches")
    choice_ptr, branch_ptr = (np.array(part or [0], np.int64) for part in _pointers(explicit))
    target = np.array(explicit.branch_to_target or [], np.int64)
    try:
        probability = np.array(explicit.branch_to_probability, np.float64)
    except TypeError as fault:
        raise UserError(f"{path}: the probabilities are intervals, which an MDP cannot have") from fault
    _check_sizes(path, system, choice_ptr, branch_ptr, target.size, probability.size)
    names, labels, n_actions = _actions(explicit, system)
    annotations = explicit.annotations or {}
    deadlock = annotations.get("aps", {}).get("deadlock", {}).get("states", [False] * system.num_states)
    return from_choices(
        Choices(
            choice_ptr=choice_ptr,
            names=names,
            branch_ptr=branch_ptr,
            target=target,
            probability=probability,
            reward=_reward(path, annotations.get("rewards", {}), reward, choice_ptr, branch_ptr),
            init=np.array(explicit.state_is_initial, np.bool_),
            deadlock=np.array(deadlock, np.bool_),
            actions=labels,
            n_actions=n_actions,
        ),
        path,
    )


def _pointers(explicit: Any) -> tuple[list[int] | None, list[int] | None]:
    return explicit.state_to_choices, explicit.choice_to_branches


def _check_sizes(path: Path, system: Any, choice_ptr: Any, branch_ptr: Any, targets: int, probabilities: int) -> None:
    for what, pointer, segments, entries in (
        ("state-to-choices", choice_ptr, system.num_states, system.num_choices),
        ("choice-to-branches", branch_ptr, system.num_choices, system.num_branches),
    ):
        if pointer.size != segments + 1 or pointer[0] != 0 or pointer[-1] != entries or (np.diff(pointer) < 0).any():
            raise UserError(f"{path}: {what} must rise from 0 to {entries} in {segments + 1} entries")
    if targets != system.num_branches or probabilities != system.num_branches:
        raise UserError(
            f"{path}: {system.num_branches} branches need as many targets and probabilities, "
            f"got {targets} and {probabilities}"
        )


def _actions(explicit: Any, system: Any) -> tuple[list[str | None], tuple[str, ...] | None, int | None]:
    """The name of each choice, the labels in order if there are any, and the number of actions if there are none."""
    numbers, strings = explicit.choice_to_choice_action, explicit.choice_action_to_string
    if numbers is None:
        return [None] * system.num_choices, None, None
    if strings is None:
        return [f"a{number}" for number in numbers], None, system.num_choice_actions
    # Storm gives the choices without a name the name "".
    return [strings[number] or None for number in numbers], tuple(name for name in strings if name), None


def _reward(path: Path, rewards: dict[str, Any], wanted: str | None, choice_ptr: Any, branch_ptr: Any) -> Floats:
    """The reward of each branch: what its state, its choice and it itself are paid."""
    if wanted is not None and wanted not in rewards:
        raise UnknownNameError("reward", wanted, rewards, str(path))
    if wanted is None and len(rewards) > 1:
        first = next(iter(rewards))
        raise UserError(f"{path} has the rewards {', '.join(rewards)}; say which: read(path, reward={first!r})")
    total = np.zeros(int(branch_ptr[-1]))
    if not rewards:
        return total
    values = rewards[wanted if wanted is not None else next(iter(rewards))]
    counts = {"states": np.diff(branch_ptr[choice_ptr]), "choices": np.diff(branch_ptr), "branches": 1}
    for applies_to, given in values.items():
        paid = np.array(given, np.float64)
        spread = (
            np.repeat(paid, counts[applies_to])
            if applies_to == "branches" or paid.size == np.size(counts[applies_to])
            else paid
        )
        if spread.size != total.size:
            raise UserError(f"{path}: the rewards of {applies_to} have {paid.size} entries, which does not fit")
        total += spread
    return total


def _look_first(path: Path) -> None:
    """Refuse an archive that unpacks to far more than it is, or whose index promises more than its bytes can hold."""
    with opened(path) as file:
        size = path.stat().st_size
        limit = EXPANSION * size + ALLOWANCE
        magic = file.read(2)
        file.seek(0)
        try:
            unpacked = cast(IO[bytes], OPENERS[magic](file)) if magic in OPENERS else file
            total = 0
            while part := unpacked.read(1 << 20):
                if (total := total + len(part)) > limit:
                    raise UserError(f"{path}: {size:,} bytes that unpack to more than {limit:,} are refused")
            unpacked.seek(0)
            with tarfile.open(fileobj=unpacked, mode="r:") as archive:
                members = [member for member in archive if member.name == "index.json"]
                if len(members) != 1 or not members[0].isreg() or members[0].size > INDEX_LIMIT:
                    raise UserError(f"{path}: a UMB file holds one index.json of at most {INDEX_LIMIT:,} bytes")
                content = archive.extractfile(members[0])
                index = json.loads(content.read() if content is not None else b"")
        except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError, ValueError, RecursionError) as fault:
            if isinstance(fault, UserError):
                raise
            raise UserError(f"{path} is not a readable UMB file: {fault}") from fault
    system = index.get("transition-system") if isinstance(index, dict) else None
    if not isinstance(system, dict):
        raise UserError(f"{path}: index.json has no transition-system")
    for key in ("#states", "#choices", "#branches"):
        value = system.get(key)
        if not isinstance(value, int) or not 0 <= value <= total // 8:
            raise UserError(f"{path}: index.json says {key} = {value!r}, which {total:,} bytes cannot hold")


def _umbi(module: str) -> Any:
    try:
        return importlib.import_module(f"umbi.{module}")
    except ImportError as fault:
        raise MissingExtraError("umbi", "umb", "reading and writing .umb files") from fault
