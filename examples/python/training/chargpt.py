"""A small character GPT, and the text that it learns: Python's own language reference, which `help()` prints and every Python has.

The text is the module pydoc_data.topics of the standard library, about 700,000 characters of English with examples of code; it differs a
little between releases, so peers of one run have to have one release, or be given one file.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
from typing import Optional

import torch
from torch import nn

CONTEXT = 64
_LETTERS = "\n" + "".join(chr(code) for code in range(32, 127))  # what is none of them is read as a space
CHARACTERS = len(_LETTERS)
_READ = {letter: index for index, letter in enumerate(_LETTERS)}


class Text:
    """The characters of a file, or of Python's language reference, as numbers below `CHARACTERS`."""

    def __init__(self, path: Optional[str] = None) -> None:
        if path is not None:
            text = pathlib.Path(path).read_text(errors="replace")
        else:
            from pydoc_data.topics import topics

            text = "\n".join(topics[name] for name in sorted(topics))
        if len(text) <= 2 * CONTEXT:
            raise SystemExit(f"{path} has {len(text)} characters; pass a text of more than {2 * CONTEXT}")
        self.numbers = torch.tensor([_READ.get(letter, _READ[" "]) for letter in text])

    def batch(self, size: int, *seeds: int) -> tuple[torch.Tensor, torch.Tensor]:
        """So many pieces from random places, and each one's characters that follow: (size, CONTEXT) each; the same for the same seeds."""
        seed = 0
        for part in seeds:
            seed = (seed * 1_000_003 + part) % 2**62
        places = torch.randint(len(self.numbers) - CONTEXT, (size, 1), generator=torch.Generator().manual_seed(seed))
        pieces = self.numbers[places + torch.arange(CONTEXT + 1)]
        return pieces[:, :-1], pieces[:, 1:]


class Block(nn.Module):
    """Attention to what came before, then two layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.question_key_value = nn.Linear(width, 3 * width, bias=False)
        self.attended = nn.Linear(width, width, bias=False)
        self.layers = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.question_key_value(self.before_attention(x)).view(batch, length, 3 * self.heads, width // self.heads)
        question, key, value = parts.transpose(1, 2).chunk(3, dim=1)
        seen = nn.functional.scaled_dot_product_attention(question, key, value, is_causal=True)
        x = x + self.attended(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.layers(x)


class GPT(nn.Module):
    """Tells of each character which one follows: (batch, length) to (batch, length, CHARACTERS); the same weights for the same seed."""

    def __init__(self, seed: int, width: int = 64, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.letters = nn.Embedding(CHARACTERS, width)
        self.places = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.next = nn.Linear(width, CHARACTERS, bias=False)
        for embedding in (self.letters, self.places):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        x = self.letters(numbers) + self.places.weight[:numbers.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.next(self.norm(x))


def loss_of(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """How badly it foretells the batch: the mean over all characters, in nats; ln(96) = 4.56 is guessing."""
    given, following = batch
    return nn.functional.cross_entropy(model(given).flatten(0, 1), following.flatten())


@torch.no_grad()
def write(model: nn.Module, start: str, length: int, seed: int) -> str:
    """Goes on from `start`, drawing each character by what the model foretells."""
    numbers = [_READ[letter] for letter in start]
    generator = torch.Generator().manual_seed(seed)
    for _ in range(length):
        foretold = model(torch.tensor([numbers[-CONTEXT:]]))[0, -1]
        numbers.append(int(torch.multinomial((foretold / 0.8).softmax(0), 1, generator=generator)))
    return "".join(_LETTERS[number] for number in numbers)
