"""From a source to a scheduler and back: one pump for each family of sources, and what they share."""
