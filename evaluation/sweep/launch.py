"""Files for other schedulers than submitit's; their jobs only call `sweep run --units`."""

import json
import re
import shlex
from typing import Final

from evaluation.json_types import JsonObject
from evaluation.sweep.plans import Plan

NEED_IMAGE: Final = "pass --image, a container image in which this package is installed"
NEED_CLAIM: Final = "pass --claim, a volume claim that holds the plan and that all jobs can write"
MOUNT: Final = "/sweep"
NO_PACKAGE: Final = (
    "jaxsim-novelty is not installed on this node: install it there, or set PATH to its environment"
)


def check_of(command: str) -> str:
    """Shell line that ends a job with one message and exit code 2 if a command fails."""
    return f"{command} >/dev/null 2>&1 || {{ echo {shlex.quote(NO_PACKAGE)} >&2; exit 2; }}"


def text(
    plan: Plan,
    kind: str,
    *,
    jobs: int = 16,
    gpus: int = 0,
    cpus: int = 2,
    memory: float = 8.0,
    minutes: int = 120,
    partition: str | None = None,
    image: str | None = None,
    claim: str | None = None,
) -> str:
    """Write the file of one scheduler.

    Args:
      plan: what is played.
      kind: "sbatch", "kubernetes" or "skypilot".
      jobs: number of jobs, at most one a unit.
      gpus: of a job.
      cpus: of a job.
      memory: of a job, GB.
      minutes: of a job.
      partition: of Slurm.
      image: container with this package, for Kubernetes.
      claim: name of the volume claim that holds the plan's folder, for Kubernetes.

    Raises:
      ValueError: what Kubernetes needs is missing.
    """
    count = min(jobs, len(plan.units))
    if kind == "sbatch":
        return _sbatch(plan, count, gpus, cpus, memory, minutes, partition)
    if kind == "skypilot":
        return _skypilot(plan, count, gpus, cpus, memory)
    if not image or not claim:
        raise ValueError(NEED_CLAIM if image else NEED_IMAGE)
    job = _kubernetes(plan, count, gpus, cpus, memory, minutes, image, claim)
    return json.dumps(job, indent=2) + "\n"


def _name(plan: Plan) -> str:
    """A name that every scheduler accepts."""
    name = re.sub(r"[^a-z0-9]+", "-", str(plan.manifest["name"]).lower()).strip("-")
    return f"sweep-{name or 'jaxsim'}"[:50].rstrip("-")


def _sbatch(
    plan: Plan,
    jobs: int,
    gpus: int,
    cpus: int,
    memory: float,
    minutes: int,
    partition: str | None,
) -> str:
    folder = shlex.quote(str(plan.folder.absolute()))
    options = [
        f"--job-name={_name(plan)}",
        f"--array=0-{jobs - 1}",
        f"--cpus-per-task={cpus}",
        f"--mem={round(1024 * memory)}M",
        f"--time={minutes}",
        "--requeue",
        "--open-mode=append",
        # Two minutes before its time is over: packs at play may end, and it is queued again.
        f"--signal=B:USR2@{min(120, 30 * minutes)}",
    ]
    options += [f"--partition={partition}"] if partition else []
    options += [f"--gpus={gpus}"] if gpus else []
    lines = ["#!/bin/bash", *(f"#SBATCH {option}" for option in options), ""]
    lines += [
        check_of("command -v jaxsim"),
        "# Units are idempotent: a job that is killed, queued again or sent twice does no harm.",
        f'jaxsim sweep run {folder} --units "$SLURM_ARRAY_TASK_ID::{jobs}" --quiet &',
        "worker=$!",
        "trap 'kill -USR2 \"$worker\"' USR2 TERM",
        'wait "$worker"; code=$?',
        'if ((code > 128)); then wait "$worker"; code=$?; fi',
        'if ((code == 75)); then scontrol requeue "$SLURM_ARRAY_JOB_ID"_"$SLURM_ARRAY_TASK_ID"; fi',
        'exit "$code"',
    ]
    return "\n".join(lines) + "\n"


def _kubernetes(
    plan: Plan,
    jobs: int,
    gpus: int,
    cpus: int,
    memory: float,
    minutes: int,
    image: str,
    claim: str,
) -> JsonObject:
    resources: JsonObject = {"cpu": str(cpus), "memory": f"{round(1024 * memory)}Mi"}
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    folder = shlex.quote(f"{MOUNT}/{plan.folder.name}")
    command = f'jaxsim sweep run {folder} --units "$JOB_COMPLETION_INDEX::{jobs}" --quiet'
    container = {
        "name": "worker",
        "image": image,
        # The shell expands the index of the pod.
        "command": ["/bin/sh", "-c"],
        "args": [f"{check_of('command -v jaxsim')}; exec {command}"],
        "resources": {"requests": resources | limits, "limits": resources | limits},
        "volumeMounts": [{"name": "sweep", "mountPath": MOUNT}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": _name(plan)},
        "spec": {
            "completionMode": "Indexed",
            "completions": jobs,
            "parallelism": jobs,
            "backoffLimitPerIndex": 20,
            "maxFailedIndexes": jobs,
            "template": {
                "spec": {
                    # Of a pod, so that indexes that wait for a node keep their time.
                    "activeDeadlineSeconds": 60 * minutes,
                    "restartPolicy": "Never",
                    "containers": [container],
                    "volumes": [{"name": "sweep", "persistentVolumeClaim": {"claimName": claim}}],
                }
            },
        },
    }


def _skypilot(plan: Plan, jobs: int, gpus: int, cpus: int, memory: float) -> str:
    """A task of SkyPilot; JSON is YAML with every value quoted."""
    resources: JsonObject = {"cpus": f"{cpus}+", "memory": f"{memory:g}+", "use_spot": True}
    resources |= {"accelerators": f"H100:{gpus}"} if gpus else {}
    task = {
        "name": _name(plan),
        "num_nodes": jobs,
        "resources": resources,
        "file_mounts": {MOUNT: {"name": f"{_name(plan)}-results", "mode": "MOUNT"}},
        "setup": "pip install jaxsim-novelty",
        "run": f"jaxsim sweep run {MOUNT}/{shlex.quote(plan.folder.name)}"
        f' --units "$SKYPILOT_NODE_RANK::{jobs}" --quiet\n',
    }
    return (
        "# Copy the plan into the bucket first. `sky jobs launch` resumes after a preemption.\n"
        + json.dumps(task, indent=2)
        + "\n"
    )
