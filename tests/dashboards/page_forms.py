"""The forms of a page as it was sent: where they go, their controls, and what describes each control."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset(
    {"input", "br", "hr", "img", "meta", "link", "source", "wbr", "col", "area", "base", "embed", "track"}
)
_CONTROLS = frozenset({"input", "select", "textarea"})
_UNTYPED = frozenset({"hidden", "submit", "button", "reset", "image"})


@dataclass
class Element:
    """An element, with the text inside it."""

    tag: str
    attributes: Mapping[str, str]
    parent: "Element | None"
    children: "list[Element]" = field(default_factory=list)
    own_text: list[str] = field(default_factory=list)

    def walk(self) -> "Sequence[Element]":
        """Return this element and all below it, in order."""
        return [self, *(one for child in self.children for one in child.walk())]

    def ancestors(self) -> "Sequence[Element]":
        """Return all elements around this one, the nearest first."""
        return [] if self.parent is None else [self.parent, *self.parent.ancestors()]

    @property
    def text(self) -> str:
        """All text inside."""
        return " ".join(" ".join(one.own_text) for one in self.walk()).strip()

    def has_class(self, name: str) -> bool:
        """Say whether it has a class."""
        return name in self.attributes.get("class", "").split()


@dataclass
class Page:
    """All elements of a page."""

    root: Element

    def forms(self) -> list[Element]:
        """Return the forms that change something."""
        found = [one for one in self.root.walk() if one.tag == "form"]
        return [one for one in found if one.attributes.get("method", "").lower() == "post"]

    def by_id(self, name: str) -> Element | None:
        """Return the element with an id."""
        return next((one for one in self.root.walk() if one.attributes.get("id") == name), None)

    def description(self, control: Element) -> str:
        """Return what describes a control: by itself, or with all of its group."""
        around = [control, *(one for one in control.ancestors() if one.attributes.get("role") == "group")]
        ids = " ".join(one.attributes.get("aria-describedby", "") for one in around).split()
        described = [found.text for name in ids if (found := self.by_id(name)) is not None]
        return " ".join([*described, control.attributes.get("title", "")]).strip()


def controls(form: Element) -> list[Element]:
    """Return what people can fill in; of a template that is not shown yet, too."""
    return [
        one
        for one in form.walk()
        if one.tag in _CONTROLS and one.attributes.get("name") and one.attributes.get("type") not in _UNTYPED
    ]


def values(form: Element) -> dict[str, str]:
    """Return what a browser would send of a form as it is."""
    sent: dict[str, str] = {}
    for one in form.walk():
        name, kind = one.attributes.get("name"), one.attributes.get("type", "text")
        if not name or one.tag not in _CONTROLS or kind in {"submit", "file", "button"}:
            continue
        if any(around.tag == "template" for around in one.ancestors()):
            continue
        if one.tag == "select":
            options = [option for option in one.walk() if option.tag == "option"]
            chosen = next((option for option in options if "selected" in option.attributes), None) or options[0]
            sent[name] = chosen.attributes.get("value", chosen.text)
        elif one.tag == "textarea":
            sent[name] = one.text
        elif kind not in {"checkbox", "radio"}:
            sent[name] = one.attributes.get("value", "")
        elif "checked" in one.attributes:
            sent[name] = one.attributes.get("value", "on")
    return sent


def parse(html: str) -> Page:
    """Read a page."""
    reader = _Reader()
    reader.feed(html)
    return Page(reader.root)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = self._at = Element("document", {}, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs}, self._at)
        self._at.children.append(made)
        if tag not in _VOID:
            self._at = made

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        at = self._at
        while at.parent is not None and at.tag != tag:
            at = at.parent
        if at.parent is not None:
            self._at = at.parent

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._at.own_text.append(data.strip())
