"""`learnkit`, the 2019 framework, as far as its documented commands go."""
