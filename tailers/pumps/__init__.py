"""Pumps from a source to a scheduler and back: one for each family of sources, and the steps that they share."""
