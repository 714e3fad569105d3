"""Atari 2600 games by a named protocol: an adapter to the emulator of ``ale-py`` (the Arcade Learning Environment).

Each environment has an emulator of its own, loaded once. An episode begins by going back to the state right after
loading, and all that is random in it (no-ops, sticky actions) is drawn from the episode's own seed; so it is a function
of its seed and its actions, and ``restore`` replays it exactly. ale-py's own ``AtariVectorEnv`` does not give that: it
starts an episode by the console's reset, after which 16 of its 104 games depend on what was played before, and its
seeded reset loads the game anew, which takes 0.1 s. Emulators take turns: ale-py holds the interpreter's lock.

Frames, beside ``gymnasium.wrappers.AtariPreprocessing`` and ``AtariVectorEnv`` (equal to each other):

* both pool and shrink as ``pool="luminance", resize="area"`` does here; theirs, by OpenCV's INTER_AREA in float32, is
  one level off now and then, where an average lies within rounding of a half;
* the first frame of an episode is pooled over two screens here where there are two, over one there;
* where a game or the cap ends an episode within an action, they show the screen from before that action (at a cap in
  frames that is a whole number of actions, also: the frame is that of one screen too early); here it is the last one;
* AtariVectorEnv draws from 0 to 29 no-ops, presses FIRE at the start, clips rewards and has no sticky actions, if not
  told otherwise; here nothing but the protocol decides.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from dynaboltz.envs.names import written
from dynaboltz.envs.protocols import Protocol, protocol
from dynaboltz.envs.spec import Environments, Spec, Step
from dynaboltz.envs.world import World, Worlds
from dynaboltz.errors import MissingExtraError, UnknownNameError, UserError

SIDE = 84
ALIASES = {"montezumasrevenge": "montezuma_revenge", "upanddown": "up_n_down"}
"""What a game is called elsewhere, where it is more than spaces and signs that differ."""


def make_atari(name: str, keywords: dict[str, Any], *, n: int, seed: int, stream: int) -> Environments:
    """``n`` emulators of a game. Keywords: ``protocol``, by default ``nature2015``, and any field of it.

    Lives are episodes only in training, which is stream 0.
    """
    rom = rom_of(name)
    changes = dict(keywords)
    rules = protocol(changes.pop("protocol", "nature2015"), **changes)
    worlds = [AtariWorld(rom, rules, training=stream == 0) for _ in range(n)]
    return AtariEnvironments(worlds, rules, name=full_name(rom, rules), seed=seed, stream=stream)


def full_name(rom: str, rules: Protocol) -> str:
    """What names the game and its protocol in full.

    >>> full_name("ms_pacman", protocol("nature2015", cap_frames=108_000))
    "atari/MsPacman(protocol='nature2015', cap_frames=108000)"
    """
    return written(f"atari/{_title(rom)}", {"protocol": rules.base, **rules.changes})


def rom_of(name: str) -> str:
    """ale-py's name of a game that may be written as it, as Gymnasium or as a paper does: ``Ms. Pac-Man``."""
    games = {_plain(rom): rom for rom in roms()}
    plain = _plain(name)
    plain = _plain(ALIASES.get(plain, plain))
    if plain in games:
        return games[plain]
    if plain in map(_plain, _shipped()):
        raise UserError(f"the Atari game {name!r} is for two players; the emulator has no score for it")
    raise UnknownNameError("Atari game", name, [_title(rom) for rom in roms()])


@cache
def roms() -> tuple[str, ...]:
    """Every game that the emulator can score; asked for others, it would end the process."""
    ale_py = _emulator()
    return tuple(rom for rom in _shipped() if ale_py.ALEInterface.isSupportedROM(_path(rom)) is not None)


def _shipped() -> list[str]:
    _emulator()
    from ale_py import roms as shipped

    names: list[str] = shipped.get_all_rom_ids()
    return names


def _path(rom: str) -> Path:
    from ale_py import roms as shipped

    return Path(shipped.__file__).parent / f"{rom}.bin"


def _title(rom: str) -> str:
    """As Gymnasium writes it."""
    return rom.title().replace("_", "")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


@cache
def _emulator() -> Any:
    try:
        import ale_py
    except ImportError as fault:
        raise MissingExtraError("ale-py", "atari", "an Atari game") from fault
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py


class AtariWorld(World):
    """One emulator.

    Args:
        rom: ale-py's name of the game.
        rules: how it is played.
        training: whether a lost life may cut the bootstrap.
    """

    def __init__(self, rom: str, rules: Protocol, *, training: bool) -> None:
        from dynaboltz.envs.atari_frames import Shrinker

        ale_py = _emulator()
        self.rules: Final = rules
        self.rom: Final = rom
        self._ale: Final = ale_py.ALEInterface()
        self._ale.setFloat("repeat_action_probability", 0.0)  # sticky actions come from the episode's seed, not its own
        self._ale.setInt("random_seed", 0)
        self._ale.loadROM(_path(rom))
        self._origin: Final = self._ale.cloneState(include_rng=True)
        self._noop: Final = ale_py.Action.NOOP
        self._set: Final = list(self._ale.getLegalActionSet() if rules.all_actions else self._ale.getMinimalActionSet())
        self._life_loss: Final = rules.life_loss if training else "ignored"
        self.spec = Spec(
            shape=(SIDE, SIDE),
            dtype="uint8",
            n_actions=len(self._set),
            stack=rules.stack,
            action_labels=tuple(action.name.lower() for action in self._set),
        )
        shape = self._ale.getScreenDims()
        self._shrink: Final = Shrinker(shape, rules.pool, rules.resize)
        self._older, self._newer = np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
        self._frame: Final = np.zeros((SIDE, SIDE), np.uint8)
        self._random = np.random.default_rng(0)
        self._held = self._noop
        self.frames = 0
        """Emulator frames of the episode, without the no-ops it began with."""
        self.life_lost = False
        """Whether the last action cost a life that counts, in an episode that goes on."""
        self._lives = 0

    def reset(self, seed: int) -> np.ndarray:
        """First frame of the episode, after its no-ops."""
        self._random = np.random.default_rng(seed)
        self._ale.restoreState(self._origin)
        self._ale.reset_game()
        self._held = self._noop
        self.frames, self.life_lost = 0, False
        self._look()
        self._older[:] = self._newer
        self._noops()
        self._lives = self._ale.lives()
        return self._seen()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """One action, held for the frames that the protocol says."""
        rules, ale = self.rules, self._ale
        chosen, sticky = self._set[action], rules.sticky_actions
        planned = rules.frames_per_action
        if rules.cap_frames:
            planned = min(planned, rules.cap_frames - self.frames)
        reward, over, lost = 0, False, False
        for left in range(planned - 1, -1, -1):
            if not sticky or self._random.random() >= sticky:
                self._held = chosen
            reward += ale.act(self._held)
            self.frames += 1
            over = ale.game_over()
            lost = self._life_loss == "terminal_noops" and ale.lives() < self._lives
            if left < 2 or over or lost:
                self._look()
            if over or lost:
                break
        if lost and not over:
            reward += self._noops()
            over = ale.game_over()
        lives = ale.lives()
        lost = self._life_loss != "ignored" and (lost or lives < self._lives)
        self._lives = lives
        truncated = not over and bool(rules.cap_frames) and self.frames >= rules.cap_frames
        self.life_lost = lost and not over and not truncated
        return self._seen(), float(reward), over or (lost and truncated), truncated

    def picture(self) -> np.ndarray:
        """The screen in its colours."""
        drawn: np.ndarray = self._ale.getScreenRGB()
        return drawn

    def text(self) -> str:
        """Lives and frames, and the frame in characters."""
        from dynaboltz.envs.pictures import frame_text

        return f"{self.rom}: lives {self._lives}, frame {self.frames}\n{frame_text(self._frame)}"

    def _noops(self) -> int:
        """As many no-ops as the protocol draws; what they brought."""
        count = int(self._random.integers(self.rules.noops_least, self.rules.noops_most + 1))
        reward = 0
        for left in range(count - 1, -1, -1):
            reward += self._ale.act(self._noop)
            if self._ale.game_over() and self.frames == 0:
                self._ale.reset_game()
            if left < 2:
                self._look()
        return reward

    def _look(self) -> None:
        """The emulator's screen becomes the newer of the two."""
        self._older, self._newer = self._newer, self._older
        self._shrink.take(self._ale, self._newer)

    def _seen(self) -> np.ndarray:
        self._shrink(self._older, self._newer, self._frame)
        return self._frame


class AtariEnvironments(Worlds):
    """``n`` emulators in step; a lost life cuts the bootstrap and the game goes on."""

    def __init__(self, worlds: list[AtariWorld], rules: Protocol, *, name: str, seed: int, stream: int) -> None:
        super().__init__(worlds, name=name, seed=seed, stream=stream)
        self.protocol: Final = rules
        self._games: Final = tuple(worlds)

    def step(self, actions: np.ndarray) -> Step:
        """One action in each game."""
        step = super().step(actions)
        for index, game in enumerate(self._games):
            if game.life_lost:
                step.terminal[index] = True
        return step
