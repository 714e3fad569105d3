"""Figures and pages: how anything that dynaboltz shows to a reader looks."""
