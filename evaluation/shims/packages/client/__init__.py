"""`client` of the Science Birds agents, as far as they import it."""
