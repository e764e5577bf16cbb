"""Classification learning of the L2M Metrics Framework: syllabi, courses, learners, logs.

| module | subject |
| --- | --- |
| `syllabus` | syllabi of classification |
| `data` | data sets and their variation |
| `folders` | data sets from folders of arrays |
| `course` | data sets in batches, for a performer |
| `learners` | learners as pure functions |
| `run` | run over many lifetimes |
| `log` | a lifetime as a 2019 log |
| `commands` | `jaxsim classify` |
| `__main__` | the same with `python -m` |
"""
