"""Draws docs/pictures/idea.svg from the decodings themselves: `python docs/pictures/make_idea.py`."""

from pathlib import Path

import torch

import dprm
from dprm.decode import Step
from dprm.theory import myopic

CHAIN = myopic(beta=2.0)
SIZE, GAP, LEFT, TOP = 46, 8, 20, 76
COLUMN = 5 * (SIZE + GAP) + 70


def decoded(order: dprm.Order) -> list[tuple[list[int], list[float], int | None]]:
    """Every canvas of a decoding: tokens, confidence of what is masked, the position revealed next."""
    frames: list[tuple[list[int], list[float], int | None]] = []

    def keep(step: Step) -> None:
        chosen = int(step.choice.mask[0].int().argmax())
        frames.append((step.state.tokens[0].tolist(), step.reading.confidence[0].tolist(), chosen))

    canvas = torch.full((1, CHAIN.length), CHAIN.vocab)
    result = dprm.decode(CHAIN.denoiser(), canvas, order, mask_id=CHAIN.vocab, on_step=keep)
    frames.append((result.tokens[0].tolist(), [0.0] * CHAIN.length, None))
    return frames


def learned() -> dprm.Order:
    """The table that `dprm demo` learns."""
    order = dprm.Order(phases=4, beta=2.0, ready=8, rule="soft_bon", explore=True, shortlist=(3, 64, 3))
    for turn in range(20):
        canvas = torch.full((16, CHAIN.length), CHAIN.vocab)
        result = dprm.decode(CHAIN.denoiser(), canvas, order, mask_id=CHAIN.vocab, seed=turn)
        order.observe(result.trace, CHAIN.reward_of(result.tokens), group=torch.zeros(16, dtype=torch.int64))
    return dprm.Order.from_policy(order.policy(), rule="top_m")


def column(x: int, title: str, colour: str, order: dprm.Order) -> list[str]:
    """One decoding from top to bottom."""
    parts = [f'<text x="{x}" y="36" class="title" fill="{colour}">{title}</text>']
    frames = decoded(order)
    for step, (tokens, confidence, chosen) in enumerate(frames):
        y = TOP + step * (SIZE + GAP + 10)
        for position, token in enumerate(tokens):
            place = x + position * (SIZE + GAP)
            masked = token == CHAIN.vocab
            edge = f'stroke="{colour}" stroke-width="3"' if position == chosen else 'stroke="#9aa5b1" stroke-width="1"'
            fill = "#eef1f4" if masked else "#ffffff"
            parts.append(f'<rect x="{place}" y="{y}" width="{SIZE}" height="{SIZE}" rx="6" fill="{fill}" {edge}/>')
            text, style = (f"{confidence[position]:.2f}", "small") if masked else (str(token), "token")
            parts.append(f'<text x="{place + SIZE / 2}" y="{y + SIZE / 2 + 6}" class="{style}">{text}</text>')
    reward = float(CHAIN.reward_of(torch.tensor([frames[-1][0]])))
    end = x + len(frames[-1][0]) * (SIZE + GAP) + 4
    y = TOP + (len(frames) - 1) * (SIZE + GAP + 10) + SIZE / 2 + 6
    parts.append(f'<text x="{end}" y="{y}" class="reward" fill="{colour}">reward {reward:.0f}</text>')
    return parts


def main() -> None:
    width, height = LEFT + 2 * COLUMN + 20, TOP + 5 * (SIZE + GAP + 10) + 6
    style = (
        "text{font-family:system-ui,Helvetica,Arial,sans-serif}.title{font-size:17px;font-weight:600}"
        ".token{font-size:20px;font-weight:600;text-anchor:middle}.small{font-size:13px;text-anchor:middle;fill:#52606d}"
        ".reward{font-size:16px;font-weight:600}.note{font-size:13px;fill:#52606d}"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="The same host decoded in confidence order and in the learned order">',
        f"<style>{style}</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="58" class="note">grey: masked, with its confidence; framed: revealed next</text>',
        *column(LEFT, "Confidence order", "#c0392b", dprm.Order()),
        *column(LEFT + COLUMN, "Learned order (DPRM)", "#1b7f4b", learned()),
        "</svg>",
    ]
    Path(__file__).with_name("idea.svg").write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
