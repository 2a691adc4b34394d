r"""A small transformer on strings, trained by gradient descent in torch (extra torch)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from solvable.arrays import check_integer, check_real, random_stream
from solvable.errors import InvalidParameter, NotConverged, quoted, unknown_choice
from solvable.fitting.devices import import_torch, torch_device
from solvable.fitting.inputs import seed_from
from solvable.models.hierarchy.grammar.learner.strings import ProbabilityClassifier


@dataclass(eq=False, repr=False)
class TransformerClassifier(ProbabilityClassifier):
    """Transformer encoder on strings, trained on the cross-entropy of the labels.

    Symbols and positions have learnt vectors, which are added. Blocks of self-attention and a two-layer
    perceptron (of four times the width) follow, with layer normalisation before and a residual connection
    around them. The label is a linear function of the last vectors. A masked leaf is a symbol of its own.

    Parameters
    ----------
    branching : int
        Number :math:`s` of symbols in a patch, at least 2; only sets the default number of layers.
    width, heads : int
        Entries of the vector of a symbol, divisible by the number of attention heads per block.
    layers : int, optional
        Number of blocks; default: :math:`L` for strings of :math:`s^L` symbols.
    readout : {"mean", "last"}
        Whether the label is read from the mean over positions, or from the last one.
    learning_rate, weight_decay : float
        Step and decoupled weight decay of Adam; the step falls to 0 as a cosine over `max_epochs`.
    batch_size, max_epochs : int
        Strings per step, and largest number of passes over the strings.
    stop_loss : float
        Training ends when the mean training loss of an epoch is at most this.
    device : str
        Device in torch's notation; "auto": the GPU where there is one, else the processor.
    vocabulary : int, optional
        Number :math:`V` of symbols, at most :math:`2^{20}`; default: the largest training symbol plus 1.
    random_state : int, Generator, RandomState or None
        Seed of the weights and of the order of the strings.

    Attributes
    ----------
    classes_, network_ : ndarray and torch.nn.Module
        Labels, and the trained network, on the processor.
    loss_curve_, n_iter_ : list of float, and int
        Mean training loss of each epoch, and number of epochs.

    Examples
    --------
    >>> TransformerClassifier(branching=2, layers=1)
    TransformerClassifier(layers=1)
    """

    largest_vocabulary = 2**20

    branching: int = 2
    width: int = 64
    layers: int | None = None
    heads: int = 4
    readout: Literal["mean", "last"] = "mean"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    batch_size: int = 64
    max_epochs: int = 100
    stop_loss: float = 0.01
    device: str = "auto"
    vocabulary: int | None = None
    random_state: Any = None

    def _fit_strings(self, symbols: np.ndarray, codes: np.ndarray) -> None:
        torch = import_torch()
        seed = seed_from(self.random_state)
        place = torch_device(torch, _device_name(torch, self.device))
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = self._modules(torch, symbols.shape[1]).to(place)
        strings, labels = (torch.as_tensor(part, device=place) for part in (symbols, codes))
        self._train(torch, network, strings, labels, random_stream(seed, "order of the strings"))
        self.network_ = network.eval().cpu()

    def _check_settings(self) -> None:
        for name in ("width", "heads", "batch_size", "max_epochs"):
            check_integer(name, getattr(self, name), 1)
        if self.layers is not None:
            check_integer("layers", self.layers, 1)
        for name in ("learning_rate", "weight_decay", "stop_loss"):
            check_real(name, getattr(self, name), 0)
        if not isinstance(self.device, str):
            raise InvalidParameter(
                f"device is {quoted(self.device)}; allowed: auto, cpu, or a name such as cuda:0."
            )
        if self.readout not in ("mean", "last"):
            raise InvalidParameter(unknown_choice("readout", self.readout, ("mean", "last")))
        if self.width % self.heads:
            raise InvalidParameter(
                f"width is {self.width} with {self.heads} heads; allowed: a multiple of heads."
            )

    def _train(
        self, torch: Any, network: Any, symbols: Any, codes: Any, rng: np.random.Generator
    ) -> None:
        """Descend until the training loss is small enough."""
        optimiser = torch.optim.AdamW(
            network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.max_epochs)
        measure = torch.nn.functional.cross_entropy
        self.loss_curve_ = []
        for epoch in range(1, self.max_epochs + 1):
            order = torch.as_tensor(rng.permutation(len(symbols)), device=symbols.device)
            total = torch.zeros((), device=symbols.device)
            for rows in order.split(self.batch_size):
                optimiser.zero_grad()
                loss = measure(self._apply(network, symbols[rows]), codes[rows])
                loss.backward()
                optimiser.step()
                total += loss.detach() * len(rows)
            schedule.step()
            self.loss_curve_.append(float(total) / len(symbols))
            self.n_iter_ = epoch
            if not np.isfinite(self.loss_curve_[-1]):
                raise NotConverged(
                    f"training diverged in epoch {epoch}. Lower learning_rate = {self.learning_rate}.",
                    {"epoch": epoch},
                )
            if self.loss_curve_[-1] <= self.stop_loss:
                break

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        torch = import_torch()
        with torch.no_grad():
            parts = [self._apply(self.network_, part) for part in torch.as_tensor(X).split(1024)]
        return np.asarray(torch.cat(parts).numpy())

    def _modules(self, torch: Any, leaves: int) -> Any:
        """Return the parts of the network with random weights."""
        nn, width = torch.nn, self.width
        block = nn.TransformerEncoderLayer(
            width, self.heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True,
            norm_first=True,
        )  # fmt: skip
        return nn.ModuleDict(
            {
                # The last row is that of a masked leaf.
                "symbols": nn.Embedding(self.vocabulary_ + 1, width),
                "positions": nn.Embedding(leaves, width),
                "blocks": nn.TransformerEncoder(
                    block,
                    self.layers or self.depth_,
                    nn.LayerNorm(width),
                    enable_nested_tensor=False,
                ),
                "readout": nn.Linear(width, len(self.classes_)),
            }
        )

    def _apply(self, network: Any, symbols: Any) -> Any:
        """Map symbols (n, d) to outputs (n, C)."""
        vectors = network["symbols"](symbols % (self.vocabulary_ + 1)) + network["positions"].weight
        vectors = network["blocks"](vectors)
        return network["readout"](vectors.mean(1) if self.readout == "mean" else vectors[:, -1])


def _device_name(torch: Any, name: str) -> str:
    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"
