"""Small logs of the 2019 layout, written for tests."""

import json
from pathlib import Path

AGENT = ("timestamp", "phase", "worker", "class_name", "block", "seed", "task", "sub_task")
AGENT += ("steps", "termination_status", "source", "reward")


def write_log(folder, blocks, column="reward", source="NEXT", workers=1):
    """Write blocks, each (phase, class_name, params, values); a value may be a list (sub-episodes).

    Args:
      folder: the log directory, made here.
      blocks: in the order they were played.
      column: name of the column of performance.
      source: what the rows say of their source.
      workers: episodes are dealt to so many workers in turn.
    """
    episode = 0
    header = (*AGENT[:-1], column)
    for index, (phase, name, params, values) in enumerate(blocks):
        rows = {worker: [] for worker in range(workers)}
        for value in values:
            parts = value if isinstance(value, list) else [value]
            for sub, part in enumerate(parts):
                row = ("20191204T103025.000000", phase, f"w{episode % workers}", name, index, 7)
                rows[episode % workers].append(
                    (*row, episode, sub, 10, "DONE" if sub == 0 else "NOT_DONE", source, part)
                )
            episode += 1
        for worker, lines in rows.items():
            where = Path(folder) / f"worker-w{worker}" / phase.replace(".", "_") / name
            where = where.with_name(f"{index}-{name}")
            where.mkdir(parents=True)
            text = [header, *lines]
            (where / "data-log.tsv").write_text(
                "".join("\t".join(map(str, line)) + "\n" for line in text)
            )
            quoted = json.dumps(params).replace('"', '""')
            (where / "block-report.tsv").write_text(
                "phase\tworker\tclass_name\tblock\tparams\n"
                f'{phase}\tw{worker}\t{name}\t{index}\t"{quoted}"\n'
            )
    return Path(folder)
