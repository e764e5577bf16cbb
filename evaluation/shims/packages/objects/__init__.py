"""`objects` of the WSU generator, as far as agents import it."""
