"""Translating sentences: an encoder-decoder Transformer on a generated parallel corpus, with padding and masks.

Batches of 32 pairs, each sentence filled up to the longest that there can be; cross-entropy of each next word, but for
what fills up; Adam with learning rate 1e-3 and Vaswani's second moment (0.98). A scale makes batches larger. Tested on
64 other pairs: the share of next words that are right when those before are given (token accuracy), and its own
translations, word by word the likeliest, which the runner works BLEU out from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envkit.worker import corpus, distributed, modes
from envkit.worker.corpus import BEGIN, END, PAD, SOURCE, TARGET
from envkit.worker.modes import USUAL, Network, Options
from envkit.worker.workloads import digests

if TYPE_CHECKING:
    from torch import Tensor

SEED = 42
BATCH = 32
PAIRS, TEST_PAIRS = 4096, 64
# With what begins and ends a sentence.
LONGEST = corpus.LONGEST + 2
# The key of ``quality`` under which the runner finds what it works BLEU out from: [translation, reference] for each.
TRANSLATIONS = "translations"


class Training:
    """One training job, ready to step."""

    unit = "sentences"

    def __init__(self, options: Options) -> None:
        import torch

        from envkit.worker.networks import transformer

        torch.manual_seed(SEED)
        self._torch = torch
        self._generator = torch.Generator().manual_seed(SEED)
        self._source, self._target = _tensors(corpus.pairs(PAIRS, SEED))
        self._test_source, self._test_target = _tensors(corpus.pairs(TEST_PAIRS, SEED + 1))
        model = transformer.Translator(SOURCE.size, TARGET.size, PAD, LONGEST)
        weights = digests.of_weights(model)
        self.network = Network(model, options)
        self._optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
        self._order: Tensor
        self._next = 0
        self.images_per_step = BATCH * options.scale
        self.steps_per_epoch = PAIRS // self.images_per_step
        files = (__file__, distributed.__file__, modes.__file__)
        data = (self._source, self._target, self._test_source, self._test_target)
        self.digests = {
            "code": digests.of_code(options, *files, corpus.__file__, str(transformer.__file__)),
            "data": digests.of_arrays(tensor.numpy() for tensor in data),
            "initial_weights": weights,
        }

    def step(self) -> float:
        """Train on the next batch, reshuffling at each epoch's start, and return the loss."""
        if self._next % self.steps_per_epoch == 0:
            self._order = self._torch.randperm(PAIRS, generator=self._generator)
            self._next = 0
        size = self.images_per_step
        batch = self._order[self._next * size : (self._next + 1) * size]
        self._next += 1
        part = distributed.share(batch)
        source, target = self._source[part], self._target[part]
        self._optimizer.zero_grad()
        scores = self.network(source, target[:, :-1])
        following = self.network.placed(target[:, 1:].flatten())
        loss = self._torch.nn.functional.cross_entropy(scores.flatten(0, 1), following, ignore_index=PAD)
        if part is not batch:  # ranks have unlike many words
            loss = distributed.weighted(loss, _count(target[:, 1:]), _count(self._target[batch][:, 1:]))
        loss.backward()  # type: ignore[no-untyped-call]  # PyTorch has no types for it
        self._optimizer.step()
        return float(loss.item())

    def quality(self) -> dict[str, object]:
        """``token accuracy`` from 0 to 1, and TRANSLATIONS as lists of word numbers."""
        source, target = self._test_source, self._test_target
        with self._torch.no_grad():
            predicted, following = self.network.test(source, target[:, :-1]).argmax(2), target[:, 1:]
            words = following != PAD
            accuracy = float((predicted == following)[words].float().mean())
            translations = self._translated(source)
        pairs = [[_words(ours), _words(reference[1:])] for ours, reference in zip(translations, target.tolist())]
        return {"token accuracy": accuracy, TRANSLATIONS: pairs}

    def _translated(self, source: Tensor) -> list[list[int]]:
        """The likeliest word after word, until each sentence has ended or is as long as any."""
        torch = self._torch
        target = torch.full((len(source), 1), BEGIN)
        for _ in range(LONGEST - 1):
            following = self.network.test(source, target)[:, -1].argmax(1, keepdim=True)
            target = torch.cat([target, following], dim=1)
            if bool((target == END).any(1).all()):
                break
        translations: list[list[int]] = target[:, 1:].tolist()
        return translations


def _count(words: Tensor) -> int:
    """How many there are, without what fills up."""
    return int((words != PAD).sum())


def _words(numbers: list[int]) -> list[int]:
    """Return what comes before the end."""
    return numbers[: numbers.index(END)] if END in numbers else numbers


def _tensors(pairs: list[tuple[list[int], list[int]]]) -> tuple[Tensor, Tensor]:
    """Both languages as int64, pairs x LONGEST, each sentence between a beginning and an end and then filled up."""
    import torch

    sentences = torch.full((2, len(pairs), LONGEST), PAD)
    for number, pair in enumerate(pairs):
        for language, words in enumerate(pair):
            sentences[language, number, : len(words) + 2] = torch.tensor([BEGIN, *words, END])
    return sentences[0], sentences[1]


def prepare(data: str, options: Options = USUAL) -> Training:
    """Make the corpus, build the network and be ready to step; ``data`` is always what is generated here."""
    return Training(options)
