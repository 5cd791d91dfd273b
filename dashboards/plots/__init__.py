"""Figures: rows in, Plotly figures out, as plain JSON values.

Colours are written ``token:NAME``; the page replaces them by the tokens of the style sheet, so that a figure follows
the theme. No Django here, and no data source.
"""
