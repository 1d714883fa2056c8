from __future__ import annotations

import hashlib
from collections import Counter

from envkit.worker import corpus
from envkit.worker.corpus import SOURCE, SPECIAL, TARGET, Phrase


def test_the_seed_decides_everything():
    assert corpus.pairs(20, 1) == corpus.pairs(20, 1)
    assert corpus.pairs(20, 1) != corpus.pairs(20, 2)
    assert corpus.pairs(20, 1)[:5] == corpus.pairs(5, 1)


def test_adjectives_and_articles_agree_with_a_noun_that_comes_before():
    one, other = Phrase(1, (0, 5), 8), Phrase(1, (0, 5), 9)
    assert one.source() == [SOURCE.articles + 1, SOURCE.adjectives, SOURCE.adjectives + 5, SOURCE.nouns + 8]
    assert one.target() == [TARGET.articles + 2, TARGET.nouns + 8, TARGET.adjectives, TARGET.adjectives + 10]
    assert other.target() == [TARGET.articles + 3, TARGET.nouns + 9, TARGET.adjectives + 1, TARGET.adjectives + 11]


def test_the_verb_comes_last_in_the_target_and_in_the_middle_of_the_source():
    for source, target in corpus.pairs(200, 3):
        assert len(source) == len(target) <= corpus.LONGEST
        assert TARGET.verbs <= target[-1] < TARGET.places
        assert sum(SOURCE.verbs <= word < SOURCE.places for word in source) == 1


def test_every_word_is_in_its_vocabulary_and_few_are_frequent():
    pairs = corpus.pairs(2000, 4)
    for side, vocabulary in ((0, SOURCE), (1, TARGET)):
        words = Counter(word for pair in pairs for word in pair[side])
        assert min(words) >= SPECIAL
        assert max(words) < vocabulary.size
    nouns = Counter(word for source, _ in pairs for word in source if SOURCE.nouns <= word < SOURCE.verbs)
    assert nouns[SOURCE.nouns] > 20 * nouns[SOURCE.verbs - 1]


def test_equal_sentences_have_equal_translations():
    pairs = corpus.pairs(3000, 5)
    found = {tuple(source): target for source, target in pairs}
    assert all(found[tuple(source)] == target for source, target in pairs)


def test_the_longest_sentence_there_can_be():
    assert max(len(source) for source, _ in corpus.pairs(3000, 6)) == corpus.LONGEST


def test_the_sentences_are_the_same_everywhere():
    digest = hashlib.sha256(repr(corpus.pairs(200, 1)).encode()).hexdigest()
    assert digest == "9e8653af35a102e25e92e8197c360901affe42016d9778aaf681d85f3900d667"
