"""Pickers: how one candidate is taken from the scored ones."""
