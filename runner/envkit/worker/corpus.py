"""A generated parallel corpus: sentences of a small grammar, and what they are in a language with another order.

The source says who does what to whom, then where: "the small dog sees a red house near the river". The target puts the
verb last, the place first, and each adjective behind its noun, with an ending that agrees with the noun; articles
agree too. So a model has to learn words, order, and agreement over a distance. Few words are frequent and many are
rare, as in any language. Everything follows from the seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

# Numbers that are no words: what fills up a batch's shorter sentences, and where a sentence begins and ends.
PAD, BEGIN, END = 0, 1, 2
SPECIAL = 3
ARTICLES, ADJECTIVES, NOUNS, VERBS, PLACES = 2, 60, 120, 60, 20
GENDERS = 2
MOST_ADJECTIVES, MOST_PLACES = 2, 2
# In words, of either language: two phrases, the verb, and places of one word and a phrase each.
LONGEST = 2 * (2 + MOST_ADJECTIVES) + 1 + MOST_PLACES * (3 + MOST_ADJECTIVES)


@dataclass(frozen=True)
class Vocabulary:
    """At which number each kind of word begins, and how many numbers there are."""

    articles: int
    adjectives: int
    nouns: int
    verbs: int
    places: int
    size: int


def _vocabulary(genders: int) -> Vocabulary:
    """Number the words of a language whose articles and adjectives have a form for each gender."""
    adjectives = SPECIAL + ARTICLES * genders
    nouns = adjectives + ADJECTIVES * genders
    verbs = nouns + NOUNS
    places = verbs + VERBS
    return Vocabulary(SPECIAL, adjectives, nouns, verbs, places, places + PLACES)


SOURCE, TARGET = _vocabulary(genders=1), _vocabulary(genders=GENDERS)


@dataclass(frozen=True)
class Phrase:
    """An article, adjectives and a noun, each by its number among the words of its kind."""

    article: int
    adjectives: tuple[int, ...]
    noun: int

    def source(self) -> list[int]:
        adjectives = (SOURCE.adjectives + adjective for adjective in self.adjectives)
        return [SOURCE.articles + self.article, *adjectives, SOURCE.nouns + self.noun]

    def target(self) -> list[int]:
        gender = self.noun % GENDERS
        adjectives = (TARGET.adjectives + GENDERS * adjective + gender for adjective in self.adjectives)
        return [TARGET.articles + GENDERS * self.article + gender, TARGET.nouns + self.noun, *adjectives]


def pairs(count: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """``count`` sentences as the numbers of their words, in both languages, without beginnings and ends."""
    chance = random.Random(seed)
    return [_pair(chance) for _ in range(count)]


def _pair(chance: random.Random) -> tuple[list[int], list[int]]:
    subject, thing = _phrase(chance), _phrase(chance)
    verb = _word(chance, VERBS)
    source = [*subject.source(), SOURCE.verbs + verb, *thing.source()]
    target: list[int] = []
    for _ in range(chance.randrange(MOST_PLACES + 1)):
        place, phrase = _word(chance, PLACES), _phrase(chance)
        source += [SOURCE.places + place, *phrase.source()]
        target += [*phrase.target(), TARGET.places + place]
    return source, [*target, *subject.target(), *thing.target(), TARGET.verbs + verb]


def _phrase(chance: random.Random) -> Phrase:
    adjectives = tuple(_word(chance, ADJECTIVES) for _ in range(chance.randrange(MOST_ADJECTIVES + 1)))
    return Phrase(chance.randrange(ARTICLES), adjectives, _word(chance, NOUNS))


def _word(chance: random.Random, kinds: int) -> int:
    """The first words of each kind are the most frequent: a uniform share to the third power.

    As products, which are the same on every machine; a power may differ in its last bit.
    """
    share = chance.random()
    return int(kinds * share * share * share)
