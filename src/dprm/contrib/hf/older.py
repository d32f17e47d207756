"""Model code that comes with a checkpoint and was written for transformers 4, made loadable by transformers 5.

LLaDA's code does not end its making with `post_init`, which lists the tied weights, and its `tie_weights` takes no
arguments. Both are added by a subclass; the code itself is run as it is.
"""

from __future__ import annotations

from typing import Any


class OwnCode:
    """Loads a model by its own code, as the classes of transformers are asked to.

    Args:
        reference: such as `modeling_llada.LLaDAModelLM`.
    """

    def __init__(self, reference: str):
        self.__name__ = self.reference = reference

    def from_pretrained(self, path: str, **settings: Any) -> Any:
        return own_class(path, self.reference).from_pretrained(path, **settings)


def own_class(path: str, reference: str) -> type[Any]:
    """The class of a checkpoint's own code, such as `modeling_llada.LLaDAModelLM`, as `from_pretrained` needs it."""
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    own: Any = get_class_from_dynamic_module(reference, path)

    class Loadable(own):  # type: ignore[misc]
        def __init__(self, config: Any, *arguments: Any, **settings: Any):
            super().__init__(config, *arguments, **settings)
            if not hasattr(self, "all_tied_weights_keys"):
                self.all_tied_weights_keys: dict[str, str] = {}

        def tie_weights(self, *arguments: Any, **settings: Any) -> None:
            try:
                super().tie_weights(*arguments, **settings)
            except TypeError:
                super().tie_weights()

    # Messages and files name the class that was asked for.
    Loadable.__name__, Loadable.__qualname__, Loadable.__module__ = own.__name__, own.__qualname__, own.__module__
    return Loadable
