"""Scenes that several files of tests play their stories with."""
