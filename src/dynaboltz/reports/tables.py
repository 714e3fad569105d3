"""Tables for a terminal, a spreadsheet, a paper."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "×": r"$\times$", "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$", "β": r"$\beta$", "γ": r"$\gamma$", "²": r"$^2$",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a header; numbers as numbers, so that each form writes them in its own way."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def records(self) -> list[dict[str, Any]]:
        """A mapping a row."""
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]

    def csv(self) -> str:
        r"""Comma-separated values, every digit of the numbers.

        >>> Table(caption="", header=("a", "b"), rows=[(1, 0.1)]).csv()
        'a,b\n1,0.1\n'
        """
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([self.header, *self.rows])
        return buffer.getvalue()

    def latex(self) -> str:
        r"""A table for LaTeX with booktabs; whatever LaTeX would take for a command is escaped.

        >>> print(Table(caption="Scores", header=("game", "100 %"), rows=[("Q_1", 2.0)]).latex())
        \begin{table}
          \centering
          \caption{Scores}
          \begin{tabular}{lr}
            \toprule
            game & 100 \% \\
            \midrule
            Q\_1 & 2 \\
            \bottomrule
          \end{tabular}
        \end{table}
        """
        numbers = [all(isinstance(row[i], int | float) for row in self.rows) for i in range(len(self.header))]
        lines = [" & ".join(shown(value).translate(_LATEX) for value in row) + r" \\" for row in self.rows]
        head = " & ".join(name.translate(_LATEX) for name in self.header) + r" \\"
        body = ["\\toprule", head, "\\midrule", *lines, "\\bottomrule"]
        return "\n".join([
            "\\begin{table}", "  \\centering", f"  \\caption{{{self.caption.translate(_LATEX)}}}",
            f"  \\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numbers)}}}",
            *(f"    {line}" for line in body), "  \\end{tabular}", "\\end{table}",
        ])  # fmt: skip

    def text(self) -> str:
        """Columns for a terminal, as wide as they need to be."""
        cells = [list(self.header), *([shown(value) for value in row] for row in self.rows)]
        numbers = [all(isinstance(row[i], int | float) for row in self.rows) for i in range(len(self.header))]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.header))]
        lines = [
            "  ".join(cell.rjust(width) if number else cell.ljust(width)
                      for cell, width, number in zip(row, widths, numbers, strict=True)).rstrip()
            for row in cells
        ]  # fmt: skip
        return "\n".join([self.caption, lines[0], "-" * max(map(len, lines)), *lines[1:]])


def shown(value: Any) -> str:
    """A value as text: four significant digits, nothing for None."""
    if value is None:
        return ""
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)
