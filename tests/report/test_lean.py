"""A drawing takes fewer bytes, and every mark of it looks as before."""

import re
from xml.etree import ElementTree

import altair
import pytest
import vl_convert

from dprm.report.charts import data
from dprm.report.lean import lean

NAMESPACE = "{http://www.w3.org/2000/svg}"
HOSTILE = """</text><script>"a" & 'b'</script> />"""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
PAINT = ("fill", "stroke", "stroke-width", "stroke-linecap", "stroke-dasharray")
INHERITED = (*PAINT, "font-family", "font-size", "font-weight", "text-anchor")


def lines_chart():
    rows = [{"x": x, "y": x * k / 7, "name": name} for x in range(6) for k, name in ((1, "one"), (2, HOSTILE))]
    chart = altair.Chart(data(rows)).encode(x="x:Q", y="y:Q", color=altair.Color("name:N"))
    return chart.mark_line(strokeWidth=2, point=True) + chart.mark_text(opacity=0.4).encode(text="name:N")


def map_chart():
    rows = [
        {"x": x, "y": y, "colour": "red" if x else "blue", "strength": (1 + x) / 7} for x in range(4) for y in (0, 1)
    ]
    rects = altair.Chart(data(rows)).mark_rect(stroke="white", strokeWidth=1.5, cornerRadius=3)
    return rects.encode(
        x="x:O",
        y="y:O",
        color=altair.Color("colour:N", scale=None),
        opacity=altair.Opacity("strength:Q", scale=None),
    )


def drawing(chart):
    return vl_convert.vegalite_to_svg({**chart.to_dict(), "config": {"background": "transparent", "aria": False}})


@pytest.fixture(params=[lines_chart, map_chart])
def svg(request):
    return drawing(request.param())


def corners(d):
    """Left, top, width and height of what a path encloses."""
    numbers = [float(number) for number in NUMBER.findall(d)]
    (left, right), (top, bottom) = ((min(side), max(side)) for side in (numbers[::2], numbers[1::2]))
    return f"round {left},{top},{right - left},{bottom - top}"


def seen(svg):
    """All that is painted, in its order: what it says, how it is painted, where it is; and all numbers of that."""
    marks = []

    def visit(element, inherited, place):
        paint = {**inherited, **{name: element.get(name) for name in INHERITED if name in element.attrib}}
        place += element.get("transform", "").replace("translate(0,0)", "")
        tag = element.tag.removeprefix(NAMESPACE)
        if tag in ("g", "svg"):
            for child in element:
                visit(child, paint, place)
            return
        shape = element.get("d", "")
        if tag == "rect":
            shape = f"round {','.join(element.get(side) for side in ('x', 'y', 'width', 'height'))}"
        elif "C" in shape:
            shape = corners(shape)
        opacity = element.get("opacity", "1")
        if (paint.get("fill") != "none" or "stroke" in paint or tag == "text") and element.get("display") != "none":
            where = f"{place} {shape} {element.get('x2')} {element.get('y2')} {opacity}"
            # Type is for text.
            kept = {name: value for name, value in paint.items() if tag == "text" or name in PAINT}
            marks.append((element.text or "", kept, where))

    visit(ElementTree.fromstring(svg), {}, "")
    shown = [(text, paint, NUMBER.sub("#", where)) for text, paint, where in marks]
    return shown, [float(number) for *_, where in marks for number in NUMBER.findall(where)]


def test_every_mark_keeps_its_place_its_paint_and_its_words(svg):
    (before, numbers), (after, shortened) = seen(svg), seen(lean(svg))
    assert len(before) > 20
    assert after == before
    assert shortened == pytest.approx(numbers, abs=0.011)


def test_the_unseen_and_the_repeated_are_left_out(svg):
    small = lean(svg)
    assert len(small) < 0.6 * len(svg)
    assert small.count("font-family") == 1
    assert not re.search(r'aria-|pointer-events|opacity="1"|class="background"|xmlns', small)


def test_what_a_host_writes_stays_escaped():
    svg = drawing(lines_chart())
    escaped = "&lt;/text&gt;&lt;script&gt;\"a\" &amp; 'b'&lt;/script&gt; /&gt;"
    assert svg.count(escaped) == lean(svg).count(escaped) > 6
    assert "<script" not in lean(svg)


def test_a_value_that_one_mark_does_not_state_is_not_forced_on_it():
    marks = '<path d="M0,0" stroke="red"/><path d="M1,1" fill="blue"/><text fill="red">a</text>'
    svg = f'<svg><g fill="none"><g>{marks}</g></g></svg>'
    assert seen(lean(svg)) == seen(svg)
    assert lean(svg).count('stroke="red"') == 1


def test_only_a_rectangle_becomes_one():
    svg = drawing(map_chart())
    assert lean(svg).count("<rect") == 8
    bent = re.sub(r'd="M3,0L', 'd="M7,0L', svg, count=1)
    assert bent != svg
    assert lean(bent).count("<rect") == 7
