"""An encoder-decoder Transformer for sentences, of a size that two cores train in a moment.

A. Vaswani et al.: Attention is all you need. NIPS (2017). Without dropout, because what chance drops may depend on how
many threads draw it, and every environment is to learn the same.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

WIDTH, HEADS, INNER, LAYERS = 128, 4, 512, 2


class Translator(nn.Module):
    """From sentences of both languages to scores for the next word; all are numbers of words, N x length.

    ``pad`` is the number that fills up shorter sentences, which no layer attends to; ``longest`` the most words.
    """

    places: Tensor

    def __init__(self, source_words: int, target_words: int, pad: int, longest: int) -> None:
        super().__init__()
        self.pad = pad
        self.source = _embedding(source_words, pad)
        self.target = _embedding(target_words, pad)
        self.register_buffer("places", _places(longest), persistent=False)
        # nested tensors are for a faster encoder where nothing is trained
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, dropout=0.0, batch_first=True),
            LAYERS,
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, dropout=0.0, batch_first=True), LAYERS
        )
        self.words = nn.Linear(WIDTH, target_words)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores N x target length x words: of each place, by the source and the words up to that place."""
        padding = source == self.pad
        read = self.encoder(self._embedded(self.source, source), src_key_padding_mask=padding)
        length = target.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        written = self.decoder(
            self._embedded(self.target, target), read, tgt_mask=later, tgt_is_causal=True,
            tgt_key_padding_mask=target == self.pad, memory_key_padding_mask=padding,
        )  # fmt: skip
        scores: Tensor = self.words(written)
        return scores

    def _embedded(self, embedding: nn.Embedding, words: Tensor) -> Tensor:
        vectors: Tensor = embedding(words)
        return vectors * math.sqrt(WIDTH) + self.places[: words.shape[1]]


def _embedding(words: int, pad: int) -> nn.Embedding:
    """Uniform and not normal: PyTorch draws normal numbers by vector code, which rounds otherwise than the plain one
    (normal_fill_AVX2 in ATen's cpu/DistributionTemplates.h), so initial weights would depend on the processor."""
    weights = torch.empty(words, WIDTH).uniform_(-1, 1)
    weights[pad] = 0
    embedding: nn.Embedding = nn.Embedding.from_pretrained(  # type: ignore[no-untyped-call]
        weights, freeze=False, padding_idx=pad
    )
    return embedding


def _places(longest: int) -> Tensor:
    """The sines and cosines that tell places apart, longest x WIDTH."""
    at = torch.arange(longest).unsqueeze(1)
    waves = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10_000.0) / WIDTH))
    places = torch.zeros(longest, WIDTH)
    places[:, 0::2] = torch.sin(at * waves)
    places[:, 1::2] = torch.cos(at * waves)
    return places
