"""`l2metrics`, as far as its commands go: that of 2019, and that of version 3.1."""
