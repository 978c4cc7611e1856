"""A scheduler for each test."""

from scenes.scheduler_place import place

__all__ = ["place"]
