"""Where things are in the arrays that Python and compiled code share."""

AGENT, WORLD = 0, 2
"""Where in a seed's four words a stream has its position and, next to it, its increment."""
COUNTERS = 8
EPISODE, STEP, TOTAL, STATE, ACTION, MARK, STATUS = range(7)
"""Columns of ``counters``: episodes ended, steps of the episode, of all; where it is; what comes next; how it is."""
RUNNING, FINISHED, REACHED, DIVERGED = range(4)
"""How a seed is."""
BY_EPISODE, BY_STEP, BY_VISIT, BY_EPISODE_STEP = range(4)
"""The clocks, in the order of ``CLOCKS``."""
