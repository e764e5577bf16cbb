"""Packages under the names of other tools; `jaxsim shims` prints this folder."""
