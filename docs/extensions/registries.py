"""Directives that write reference pages from the registries, when the site is built.

`{commands}` documents every command from its own parser, `{agents}` lists agents, detectors and
hyper-parameters, `{environments}` lists environments with their spaces, and `{modules} FOLDER`
lists modules with the first lines of their docstrings.
"""

import argparse
import ast
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WIDTH = "96"  # of help texts, in columns


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Parsers of a command's parts, by name."""
    parsers: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            parsers |= action.choices
    return parsers


def command_section(parser: argparse.ArgumentParser) -> nodes.section:
    """Section with the help of a command, and one in it for each of its parts."""
    section = nodes.section(ids=[nodes.make_id(parser.prog)])
    section += nodes.title(text=parser.prog)
    section += nodes.literal_block(text=parser.format_help().strip(), language="text")
    section += [command_section(part) for part in subcommands(parser).values()]
    return section


class Commands(SphinxDirective):
    """Help of all commands."""

    def run(self) -> list[nodes.Node]:
        """Return one section for each command."""
        from evaluation.cli import build_parser

        os.environ["COLUMNS"] = WIDTH
        return [command_section(part) for part in subcommands(build_parser()).values()]


class Table(SphinxDirective, ABC):
    """A page part written as Markdown by `lines`."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Lines of Markdown."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the Markdown."""
        holder = nodes.container()
        self.state.nested_parse(StringList(list(self.lines())), self.content_offset, holder)
        return holder.children


def summary(function: Callable[..., Any]) -> str:
    """First line of a function's docstring, or of its module's."""
    function = getattr(function, "func", function)  # of a partial one
    text = inspect.getdoc(function) or inspect.getdoc(inspect.getmodule(function)) or ""
    return text.partition("\n")[0]


class Agents(Table):
    """Tables of agents, detectors and hyper-parameters."""

    def lines(self) -> Iterator[str]:
        """Lines of Markdown."""
        from jaxsim import agents, training

        yield "| agent | learns | what it is |"
        yield "| --- | --- | --- |"
        for name, agent in agents.AGENTS.items():
            yield f"| `{name}` | | {summary(agent.act)} |"
        for name, make in training.LEARNERS.items():
            yield f"| `{name}` | yes | {summary(make)} |"
        names = ", ".join(f"`{name}`" for name in agents.DETECTORS)
        yield ""
        yield f"Detectors join any agent as `AGENT+DETECTOR`: {names}."
        yield ""
        yield "| hyper-parameter of learners | default | smallest | largest |"
        yield "| --- | --- | --- | --- |"
        for field in fields(training.Settings):
            low, high = training.settings.BOUNDS.get(field.name, ("", ""))
            yield f"| `{field.name}` | {field.default} | {low} | {high} |"


class Environments(Table):
    """Table of registered environments."""

    def lines(self) -> Iterator[str]:
        """Lines of Markdown."""
        import jaxsim
        from jaxsim import spaces

        yield "| environment | actions | most steps | numbers in a flat observation | parameters |"
        yield "| --- | --- | --- | --- | --- |"
        for env_id in jaxsim.registered_envs():
            env, params = jaxsim.make(env_id)
            (size,) = spaces.observation_space(env, params).shape
            count = len(jaxsim.spec(env_id).parameters)
            yield f"| `{env_id}` | {env.num_actions} | {env.max_steps} | {size} | {count} |"


class Modules(Table):
    """Table of a folder's modules with the first lines of their docstrings."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        """Lines of Markdown."""
        root = Path(self.env.srcdir).parent
        folder = root / self.arguments[0]
        yield "| module | subject |"
        yield "| --- | --- |"
        for path in sorted(folder.rglob("*.py")):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            name = path.relative_to(folder).with_suffix("").as_posix()
            yield f"| `{name}` | {text.partition(chr(10))[0].replace('|', chr(92) + '|')} |"


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive("commands", Commands)
    app.add_directive("agents", Agents)
    app.add_directive("environments", Environments)
    app.add_directive("modules", Modules)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
