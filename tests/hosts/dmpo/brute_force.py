"""Countdown by trying everything, written without the package: what is reachable, and how."""

from collections.abc import Iterator

LARGEST = 9_999


def solutions(numbers: tuple[int, ...], target: int) -> Iterator[str]:
    """Every way to reach the target that uses all numbers, as a response text; the larger operand comes first."""
    yield from _search(list(numbers), target, [])


def _search(values: list[int], target: int, steps: list[str]) -> Iterator[str]:
    if len(values) == 1:
        if values[0] == target:
            yield ",".join(steps)
        return
    for i in range(len(values)):
        for j in range(i):
            a, b = max(values[i], values[j]), min(values[i], values[j])
            rest = [value for k, value in enumerate(values) if k not in (i, j)]
            found = {"+": a + b, "-": a - b, "*": a * b}
            if b and a % b == 0:
                found["/"] = a // b
            for sign, result in found.items():
                if result <= LARGEST:
                    yield from _search([*rest, result], target, [*steps, f"{a}{sign}{b}={result}"])


def replay(numbers: tuple[int, ...], target: int, text: str) -> bool:
    """Whether a response solves the problem, by carrying the list of values from step to step."""
    values = list(numbers)
    last = None
    for step in text.split(","):
        try:
            formula, result_text = step.split("=")
            sign = next(character for character in formula if not character.isdigit())
            left_text, right_text = formula.split(sign)
            texts = (left_text, right_text, result_text)
            if any(not part.isdigit() or str(int(part)) != part for part in texts):
                return False
            left, right, result = map(int, texts)
            values.remove(left)
            values.remove(right)
        except (ValueError, StopIteration):
            return False
        if sign not in "+-*/" or (sign == "/" and right == 0):
            return False
        # For division in the form of a product, so that nothing is rounded.
        true = (
            result * right == left
            if sign == "/"
            else {"+": left + right, "-": left - right, "*": left * right}[sign] == result
        )
        if not true or result > LARGEST:
            return False
        values.append(result)
        last = result
    return values == [last] == [target]
