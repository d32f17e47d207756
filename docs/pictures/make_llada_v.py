"""Draw llada_v.svg from the committed card: the first question cards of the counts that one of two orders answers.

python docs/pictures/make_llada_v.py results/llada_v-test.json ARM
"""

import json
import sys
from pathlib import Path

from dprm.hosts.llada_v.cards import drawn

CARDS = 6


def picture(card: Path, arm: str) -> str:
    """Wins and losses in turns."""
    cases = json.loads(card.read_text())["notes"]["gallery"][arm]
    turns = [line for pair in zip(cases["won"], cases["lost"], strict=False) for line in pair]
    return drawn(turns[:CARDS]) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("llada_v.svg").write_text(picture(Path(sys.argv[1]), sys.argv[2]))
