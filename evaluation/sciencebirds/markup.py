"""XML as elements with their lines, by a parser that expands and fetches nothing.

Document types, entities and external references are refused before anything is expanded, so that
neither "a billion laughs" nor a file of the machine gets in.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler

MAX_BYTES = 64 * 2**20
"""Longest file that is read."""
MAX_DEPTH = 16
"""Deepest nesting of elements; the grammars need eight."""
MAX_ELEMENTS = 1_100_000
"""Most elements of a document."""
MAX_TEXT = 1000
"""Longest text of an element, characters; it is a number or a word."""

_ENCODING = re.compile(r"""^(\s*<\?xml[^>]*?)(\sencoding\s*=\s*(["'])([^"'>]*)\3)""")


class DocumentError(ValueError):
    """Something in a document is wrong; the message says where and what to change.

    Args:
      reason: what is wrong and what to do about it.
      name: of the file or its source.
      line: from 1; None for the whole file.
      column: from 1.
    """

    def __init__(
        self, reason: str, name: str, line: int | None = None, column: int | None = None
    ) -> None:
        place = ":".join(str(part) for part in (name, line, column) if part is not None)
        super().__init__(f"{place}: {reason}")
        self.reason, self.line, self.column = reason, line, column


@dataclass(slots=True)
class Element:
    """One element of a document.

    Attributes:
      tag: its name.
      attributes: by name.
      document: name of the file, for errors.
      line: of its opening bracket, from 1.
      column: of its opening bracket, from 1.
      text: the characters directly inside, joined.
      children: the elements directly inside, in order.
    """

    tag: str
    attributes: Mapping[str, str]
    document: str
    line: int
    column: int
    text: str = ""
    children: list["Element"] = field(default_factory=list)

    def error(self, reason: str) -> DocumentError:
        """Return an error at this element."""
        return DocumentError(f"<{self.tag}>: {reason}", self.document, self.line, self.column)

    def all(self, tag: str) -> Iterator["Element"]:
        """Children of that name."""
        return (child for child in self.children if child.tag == tag)

    def child(self, tag: str) -> "Element | None":
        """Return the only child of that name, None if there is none.

        Raises:
          DocumentError: there are several.
        """
        matches = list(self.all(tag))
        if len(matches) > 1:
            raise matches[1].error(f"<{self.tag}> takes only one <{tag}>")
        return matches[0] if matches else None

    def only(self, *, attributes: tuple[str, ...] = (), children: tuple[str, ...] = ()) -> None:
        """Refuse attributes and children of other names.

        Raises:
          DocumentError: at the element that does not belong there.
        """
        for name in self.attributes:
            if name not in attributes:
                allowed = ", ".join(attributes) or "none"
                raise self.error(f"unknown attribute {name!r}; allowed: {allowed}")
        for child in self.children:
            if child.tag not in children:
                allowed = ", ".join(f"<{name}>" for name in children) or "no element"
                raise child.error(f"is not known inside <{self.tag}>; allowed: {allowed}")

    def value(self, name: str) -> str | None:
        """Value of a name: that of an attribute, or else the content of a child.

        Raises:
          DocumentError: there are both.
        """
        child = self.child(name)
        if name in self.attributes:
            if child is not None:
                raise child.error(f"stands beside the attribute {name!r}; keep one of them")
            return self.attributes[name].strip()
        return None if child is None else child.content()

    def content(self) -> str:
        """The text of an element or, if that is empty, its attribute `value`."""
        text = self.text.strip()
        return text if text else self.attributes.get("value", "").strip()


class _Builder(ContentHandler):
    """Collects elements while the parser reads."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0
        self.locator: Any = None

    def setDocumentLocator(self, locator: Any) -> None:
        self.locator = locator

    def startElement(self, name: str, attrs: Any) -> None:
        line, column = self.locator.getLineNumber(), self.locator.getColumnNumber() + 1
        element = Element(name, dict(attrs.items()), self.name, line, column)
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise element.error(f"is one of more than {MAX_ELEMENTS} elements; split the document")
        if len(self.open) == MAX_DEPTH:
            raise element.error(f"elements are nested more than {MAX_DEPTH} deep")
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def endElement(self, name: str) -> None:
        self.open.pop()

    def characters(self, content: str) -> None:
        if not content.strip():
            return
        element = self.open[-1]
        element.text += content
        if len(element.text) > MAX_TEXT:
            raise element.error(f"holds more than {MAX_TEXT} characters; write a number or a word")


def read(path: Path) -> Element:
    """Read a file; see `parse`.

    Raises:
      DocumentError: as `parse`.
      OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return parse(file.read(MAX_BYTES + 1), str(path))


def parse(data: bytes, name: str) -> Element:
    """Read a document.

    Args:
      data: UTF-8, or UTF-16 with a byte order mark. A file of UTF-8 that declares UTF-16, as the
        original's do, is read as UTF-8.
      name: of the file, for errors.

    Returns:
      The outermost element.

    Raises:
      DocumentError: not such a document, too long, or with a document type or entities.
      ValueError: defusedxml is not installed.
    """
    try:
        import defusedxml
        import defusedxml.sax
    except ImportError as error:
        raise ValueError(
            "reading XML needs defusedxml: pip install 'jaxsim-novelty[sciencebirds]'"
        ) from error
    if len(data) > MAX_BYTES:
        raise DocumentError(f"is longer than {MAX_BYTES // 2**20} MiB; split it", name)
    builder = _Builder(name)
    try:
        defusedxml.sax.parseString(_decode(data, name).encode(), builder, forbid_dtd=True)
    except defusedxml.DefusedXmlException as error:
        raise DocumentError(
            "holds a document type or entities, which are refused; write the values out", name
        ) from error
    except SAXParseException as error:
        line, column = error.getLineNumber(), (error.getColumnNumber() or 0) + 1
        raise DocumentError(f"not XML: {error.getMessage()}", name, line, column) from error
    except SAXException as error:
        raise DocumentError(f"not XML: {error.getMessage()}", name) from error
    if builder.root is None:
        raise DocumentError("holds no element", name)
    return builder.root


def _decode(data: bytes, name: str) -> str:
    """Text of a document, with a declared encoding blanked out."""
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError("is neither UTF-8 nor UTF-16 with a byte order mark", name) from error
    declaration = _ENCODING.match(text)
    if declaration is None:
        return text
    if declaration[4].lower() not in ("utf-8", "utf8", "utf-16", "us-ascii"):
        raise DocumentError(f"encoding is {declaration[4]!r}; it must be utf-8 or utf-16", name)
    start, end = declaration.span(2)
    return text[:start] + " " * (end - start) + text[end:]
