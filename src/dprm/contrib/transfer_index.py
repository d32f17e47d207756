"""NeMo AutoModel, and all that share its seam: `get_transfer_index(logits, temperature, remasking, mask_index, x, …)`.

The function gives the drawn tokens [B,L] and which of them are committed [B,L]. Fast-dLLM has the same one, and so have
the post-training code bases that grew from it. Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from dprm.contrib.replaced import replaced
from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch

TransferIndex = Callable[..., tuple[Tensor, Tensor]]


def ordered(get_transfer_index: TransferIndex, selector: Selector, watch: Watch | None = None) -> TransferIndex:
    """The same function, committing as many positions as it would, chosen by a policy."""
    watch = watch or Watch()

    def choose(
        logits: Tensor, temperature: float, remasking: str, mask_index: Tensor, x: Tensor, *args: Any, **named: Any
    ) -> tuple[Tensor, Tensor]:
        tokens, own = get_transfer_index(logits, temperature, remasking, mask_index, x, *args, **named)
        if selector.idle:
            return tokens, own
        requests = watch.requests(mask_index)
        return tokens, selector.select(own, None, mask_index, requests, logits=logits, tokens=tokens)

    return choose


@contextmanager
def attached(module: Any, selector: Selector, name: str = "get_transfer_index", prefix: str = "") -> Iterator[Watch]:
    """Have a module that calls the function by name call the ordered one.

    Args:
        module: where it is called: names that were imported from elsewhere are the caller's own.
        prefix: before the numbers of rows that are not named.
    """
    watch = Watch(prefix)
    with replaced(module, name, ordered(getattr(module, name, None), selector, watch)):  # type: ignore[arg-type]
        yield watch
