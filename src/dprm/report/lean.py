"""The same drawing in fewer bytes: what nobody sees is left out, and what the marks of a group share is said once.

Vega writes every attribute on every mark. In SVG paint and type are inherited, so the value that most marks of a group
have moves to the group, and on from group to group; a mark with another value keeps its own. Opacity is not inherited
(that of a group is another thing) and stays where it is.
"""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

_TYPE = ("font-family", "font-size", "font-weight", "text-anchor")
_PAINT = ("fill", "stroke", "stroke-width", "stroke-linecap", "stroke-dasharray", "stroke-miterlimit")
# The drawing has one label for those who do not see it, and no part of it answers a pointer.
_UNUSED = {"role", "aria-hidden", "aria-roledescription", "pointer-events", "version"}
_NOTHING = {"opacity": "1", "transform": "translate(0,0)"}
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
_LONG, _NUMBER = re.compile(r"(\d\.\d\d)\d+"), re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def lean(svg: str) -> str:
    """A drawing of Vega for a place inside HTML, where SVG needs no namespace; its text is escaped as it was."""
    root = ElementTree.fromstring(svg.replace(_NAMESPACE, "", 1))
    _without_the_unseen(root)
    _lift(root)
    for element in root.iter():
        # Coordinates to a hundredth of a pixel; what people read is text, not an attribute.
        element.attrib.update({name: _LONG.sub(r"\1", value) for name, value in element.attrib.items()})
    return ElementTree.tostring(root, encoding="unicode")


def _without_the_unseen(element: Element) -> None:
    """Leave out marks that paint nothing, attributes that say nothing, and groups around nothing or for nothing."""
    for name in _UNUSED & element.attrib.keys():
        del element.attrib[name]
    for name, value in _NOTHING.items():
        if element.get(name) == value:
            del element.attrib[name]
    # `mark-symbol` and its like are kept; Vega's other classes name places in its own tree.
    for kind in element.attrib.pop("class", "").split()[:1]:
        if kind.startswith("mark-") and kind != "mark-group":
            element.set("class", kind)
    kept: list[Element] = []
    for child in element:
        unpainted = child.get("class") in ("background", "foreground") and not {"fill", "stroke"} & child.attrib.keys()
        if unpainted or child.get("display") == "none" or child.get("opacity") == "0":
            continue
        _without_the_unseen(child)
        if child.tag == "path":
            _as_rectangle(child)
        if child.tag == "g" and not (child.attrib and len(child)):
            kept.extend(child)
        else:
            kept.append(child)
    element[:] = kept


def _as_rectangle(path: Element) -> None:
    """Turn a path into a rectangle with round corners, if it is one: `rect` says in four numbers what takes 34."""
    line = path.get("d", "")
    if re.sub(r"[^A-Za-z]", "", line) != "MLCLCLCLCZ":
        return
    numbers = [float(number) for number in _NUMBER.findall(line)]
    points = list(zip(numbers[::2], numbers[1::2]))
    # Where the segments end, without the handles of the corners.
    ends = [points[place] for place in (0, 1, 4, 5, 8, 9, 12, 13)]
    (left, right), (top, bottom) = ((min(side), max(side)) for side in zip(*ends))
    corner = ends[0][0] - left
    a, b, c, d = left + corner, right - corner, top + corner, bottom - corner
    expected = [(a, top), (b, top), (right, c), (right, d), (b, bottom), (a, bottom), (left, d), (left, c)]
    if any(abs(x - u) + abs(y - v) > 0.01 for (x, y), (u, v) in zip(ends, expected)):
        return
    path.tag = "rect"
    del path.attrib["d"]
    sides = {"x": left, "y": top, "width": right - left, "height": bottom - top, "rx": corner}
    path.attrib.update({name: f"{value:g}" for name, value in sides.items()})


def _lift(group: Element) -> None:
    """Move what the children of a group say in common to the group, from the marks upwards."""
    for child in group:
        if child.tag == "g":
            _lift(child)
    for names, drawn in ((_TYPE, ("text",)), (_PAINT, ("text", "path", "rect", "line"))):
        concerned = [child for child in group if any(inner.tag in drawn for inner in child.iter())]
        for name in names:
            values = [child.attrib[name] for child in concerned if name in child.attrib]
            # A child that says nothing inherits from further up, and would be changed.
            if not values or len(values) < len(concerned) or name in group.attrib:
                continue
            common = Counter(values).most_common(1)[0][0]
            group.set(name, common)
            for child in concerned:
                if child.get(name) == common:
                    del child.attrib[name]
