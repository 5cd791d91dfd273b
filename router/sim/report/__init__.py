"""Showing what runs gave: as a table, as JSON, as one self-contained page of charts."""
