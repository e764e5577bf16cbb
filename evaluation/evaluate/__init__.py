"""Agents on levels without a syllabus: `jaxsim evaluate`."""
