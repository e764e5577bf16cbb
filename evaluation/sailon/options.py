"""The command line of an agent's file: optparse's, as agents for the WSU generator expect it.

Source: specs of the agent interface; `add_argument` is for agents that were written for argparse.
"""

import optparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

_KNOWN = (int, float, complex, str, None)  # types that optparse converts itself


class AgentOptions(optparse.OptionParser):
    """Parser that agents add their options to.

    Args:
      strict: refuse unknown options instead of ignoring them.
    """

    def __init__(self, *, strict: bool) -> None:
        super().__init__(add_help_option=False)
        self._strict = strict

    def parsed(self, arguments: Sequence[str]) -> optparse.Values:
        """Parse a command line.

        Raises:
          ValueError: an unknown option, or a value that does not fit.
        """
        values, rest = self.parse_args(list(arguments))
        if rest and self._strict:
            self.error(f"no such option or argument: {rest[0]}")
        return values

    def add_argument(self, *names: str, **settings: Any) -> optparse.Option:
        """Add an option as argparse does.

        Raises:
          ValueError: a positional argument.
        """
        if not all(name.startswith("-") for name in names):
            self.error(f"an agent has options only, and {names[0]!r} does not begin with a dash")
        convert = settings.get("type")
        if settings.get("action") in ("store_true", "store_false"):
            settings.setdefault("default", settings["action"] == "store_false")
        if settings.pop("required", False):
            settings["help"] = f"{settings.get('help', '')} (required)"
        if convert not in _KNOWN:
            settings |= {"type": "string", "action": "callback", "callback": _stored(convert)}
            longest = max(names, key=len)
            settings.setdefault("dest", longest.lstrip("-").replace("-", "_"))
        return self.add_option(*names, **settings)

    def error(self, msg: str) -> NoReturn:
        """Raise instead of ending the process."""
        raise ValueError(f"command line of the agent: {msg}")

    def _process_long_opt(self, rargs: list[str], values: optparse.Values) -> None:
        self._ignoring_unknown(super()._process_long_opt, rargs, values)

    def _process_short_opts(self, rargs: list[str], values: optparse.Values) -> None:
        self._ignoring_unknown(super()._process_short_opts, rargs, values)

    def _ignoring_unknown(
        self, process: Callable[..., None], rargs: list[str], values: optparse.Values
    ) -> None:
        try:
            process(rargs, values)
        except optparse.BadOptionError as error:
            if self._strict:
                raise
            assert self.largs is not None
            self.largs.append(error.opt_str)


def _stored(convert: Callable[[str], object]) -> Callable[..., None]:
    """Callback that stores a converted value, for types that optparse does not know."""

    def store(option: optparse.Option, name: str, value: str, parser: AgentOptions) -> None:
        try:
            result = convert(value)
        except (TypeError, ValueError) as error:
            raise optparse.OptionValueError(f"option {name}: {value!r}: {error}") from error
        assert option.dest
        setattr(parser.values, option.dest, result)

    return store
