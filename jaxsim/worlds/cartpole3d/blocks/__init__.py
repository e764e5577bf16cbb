"""Block slots: their form, placement, and blocks that appear while an episode runs."""
