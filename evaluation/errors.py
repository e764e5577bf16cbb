"""Errors of code that is not ours, as text that any file can carry."""


def message_of(error: BaseException) -> str:
    """Message of an exception, also of one that cannot be printed; lone surrogates are escaped."""
    try:
        text = str(error)
    except Exception:
        text = f"a {type(error).__name__} that cannot be printed"
    return text.encode("utf-8", "backslashreplace").decode()


def one_line(error: BaseException) -> str:
    """Type and message of an exception in one line, as "ValueError: no such level"."""
    return " ".join(f"{type(error).__name__}: {message_of(error)}".split())
