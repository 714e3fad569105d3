"""Figures a paper could print: one style, vector files, colours that survive colour blindness and a grey printer.

Matplotlib is imported when a figure is drawn.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynaboltz.errors import MissingExtraError
from dynaboltz.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette."""

INK, GRID, PAPER = "#1b1f24", "#d8d8d8", "#fffffe"
"""Colours that a page replaces by its own, so that a figure is dark where the page is; none is used for data."""

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.facecolor": PAPER,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "figure.facecolor": PAPER,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,
    "savefig.bbox": "tight",
    "savefig.facecolor": PAPER,
    "savefig.pad_inches": 0.04,
    "svg.fonttype": "path",
    "svg.hashsalt": "dynaboltz",
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as data: its file name, words, and how to draw it."""

    name: str
    """File name without suffix."""
    caption: str
    alt: str
    """What a reader who cannot see it should know."""
    draw: Callable[[], MatplotlibFigure]


@contextmanager
def style() -> Iterator[None]:
    """The one style, for the figures drawn inside."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "drawing figures") from None
    from cycler import cycler

    with mpl.rc_context({**STYLE, "backend": "Agg", "axes.prop_cycle": cycler(color=COLOURS)}):
        yield


def canvas(columns: int = 1, *, width: float = 5.2, height: float = 3.1, **options: Any) -> tuple[Any, Any]:
    """An empty figure and its axes (an array of them if there are several columns)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as MatplotlibFigure

    figure = MatplotlibFigure(figsize=(width * columns if columns > 1 else width, height))
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, columns, **options)


METADATA: Any = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "Creator": "dynaboltz"},
    "png": {"Software": "dynaboltz"},
}
"""What each file says of itself, by its suffix: no dates."""


def save(figure: Figure, folder: Path, formats: Sequence[str] = ("svg", "pdf")) -> str:
    """Draw the figure, write it into ``folder`` in the formats (svg, pdf, png), and return the SVG.

    The same data gives the same bytes: no dates, no random ids.
    """
    with style():
        drawn = figure.draw()
        files = {}
        for suffix in dict.fromkeys(("svg", *formats)):
            buffer = io.BytesIO()
            drawn.savefig(buffer, format=suffix, metadata=METADATA[suffix], dpi=200)
            files[suffix] = buffer.getvalue()
    for suffix, content in files.items():
        write_atomically(folder / f"{figure.name}.{suffix}", content)
    return files["svg"].decode()
