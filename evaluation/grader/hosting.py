"""Agents under limits: called directly, in a thread or in a process.

Without limits, a test case calls the agent directly. With a time limit the agent runs in another
thread; with a memory limit or `isolate`, in another process. Environment and evaluator
stay with the caller in each case: an agent that was given up cannot reach them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from evaluation.grader.agent import Agent, CreateAgent, checked_agent
from evaluation.grader.alarm import backstop
from evaluation.grader.limits import Deadline, Host, LimitedAgent, Limits
from evaluation.grader.processes import ProcessHost
from evaluation.grader.threads import ThreadHost


@contextmanager
def limited(
    limits: Limits, create_agent: CreateAgent, agent_init: Mapping[str, object]
) -> Iterator[Agent]:
    """Make an agent under limits, and end it with the context.

    Args:
      limits: of the agent.
      create_agent: a submission's function.
      agent_init: its arguments.

    Yields:
      The agent, or its proxy.

    Raises:
      TimeoutException: the time is over, also if only at the end.
    """
    if not callable(create_agent):
        raise TypeError(f"create_agent is a {type(create_agent).__name__}; it must be a function")
    if not (limits.timed or limits.child):
        yield checked_agent(create_agent(**agent_init))
        return
    with _host(limits, create_agent, agent_init) as host:
        host.deadline = Deadline(limits)
        with backstop(limits):
            host.create()
            yield LimitedAgent(host)
        host.deadline.check()


def _host(limits: Limits, create_agent: CreateAgent, agent_init: Mapping[str, object]) -> Host:
    if limits.child:
        return ProcessHost(create_agent, agent_init, limits.memory_limit)
    return ThreadHost(create_agent, agent_init)
