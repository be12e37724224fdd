"""Linear heads on vectors, and the regression that fits them, beside scikit-learn's and by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import edit_json, file_names, flip_byte, raises
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from xsent.bundle import file_digest
from xsent.classification import logistic
from xsent.classification.classifier import LinearClassifier
from xsent.classification.logistic import Logistic, fit_logistic, log_softmax
from xsent.errors import DataError

DIM = 6
LABELS = ("animals", "money", "weather")

Vectors = NDArray[np.float32]


def make(count: int = 90, noise: float = 0.6) -> tuple[Vectors, list[str]]:
    random = np.random.default_rng(2)
    classes = np.arange(count) % 3
    vectors = np.eye(DIM)[classes] + noise * random.normal(size=(count, DIM))
    return vectors.astype(np.float32), [LABELS[number] for number in classes]


@pytest.fixture(scope="module")
def head() -> LinearClassifier:
    return LinearClassifier.fit(*make(), fingerprint="abc")


def test_a_head_learns_its_labels(head: LinearClassifier) -> None:
    assert head.predict(np.eye(DIM)[:3]) == list(LABELS)
    assert repr(head) == "LinearClassifier(3 labels for texts, dim=6)"
    vector = np.array([3.0, 4.0, 0, 0, 0, 0], np.float32)
    scores = np.exp(head.weight @ (np.sqrt(6) * vector / 5) + head.bias)
    assert head.predict_proba(vector[None])[0] == pytest.approx(scores / scores.sum(), abs=1e-6)
    for shape in ((DIM,), (2, DIM + 1), (2, 2, DIM)):
        raises(ValueError, r"expected vectors \[n, 6\], as the head was fitted on", head.predict, np.ones(shape))
    raises(ValueError, "unknown = -1", head.predict, np.eye(DIM), unknown=-1)
    vectors, labels = make()
    assert head.classes_.tolist() == list(LABELS)
    found = np.array(head.predict(vectors))
    assert head.score(vectors, labels) == np.mean(found == np.array(labels))
    scores = np.exp(head.decision_function(vectors))
    assert scores / scores.sum(axis=1, keepdims=True) == pytest.approx(head.predict_proba(vectors), abs=1e-5)
    two = LinearClassifier.from_descriptions(np.eye(DIM)[:2], ["a", "b"], fingerprint="")
    assert (two.decision_function(np.eye(DIM)[:2]) > 0).tolist() == [False, True]
    raises(ValueError, "1 labels for 90 vectors", head.score, vectors, ["animals"])
    again = LinearClassifier.fit(vectors, labels, fingerprint="abc")
    assert np.array_equal(again.weight, head.weight)
    assert (again.choice, again.labels) == (head.choice, head.labels)
    assert np.allclose(head.predict_proba(7 * vectors), head.predict_proba(vectors), atol=1e-6)
    assert np.allclose(head.predict_proba(vectors.astype(np.float16)), head.predict_proba(vectors), atol=2e-3)


def test_probabilities_are_true_to_their_frequency() -> None:
    vectors, labels = make(2400, noise=1.0)
    head = LinearClassifier.fit(vectors[:600], labels[:600], fingerprint="abc")
    right = np.array(head.predict(vectors[600:])) == np.array(labels[600:])
    assert head.predict_proba(vectors[600:]).max(axis=1).mean() == pytest.approx(right.mean(), abs=0.05)
    assert right.mean() == pytest.approx(head.choice.accuracy, abs=0.06)


def test_pairs_see_what_each_side_alone_does_not() -> None:
    random = np.random.default_rng(6)
    u = random.normal(size=(120, DIM))
    same = np.arange(120) % 2 == 0
    v = np.where(same[:, None], u + 0.2 * random.normal(size=u.shape), random.normal(size=u.shape))
    pairs = np.stack([u, v], axis=1)
    head = LinearClassifier.fit(pairs, ["same" if s else "other" for s in same], fingerprint="x")
    assert head.weight.shape == (2, 4 * DIM)
    assert head.choice.accuracy > 0.85
    one = pairs[:1].astype(np.float32)
    a, b = np.sqrt(DIM) * one[0] / np.linalg.norm(one[0], axis=1, keepdims=True)
    scores = np.exp(head.weight @ np.concatenate([a, b, abs(a - b), a * b]) + head.bias)
    assert head.predict_proba(one)[0] == pytest.approx(scores / scores.sum(), abs=1e-5)
    assert head.predict(np.stack([u[:1], 0 * u[:1]], axis=1)) == [None]  # one side has no words


def test_few_examples_and_rare_labels_do() -> None:
    for labels in ("aabb", "aabba", "aabbaba"):
        vectors = np.eye(DIM)[["ab".index(label) for label in labels]]
        head = LinearClassifier.fit(vectors, [*labels], fingerprint="x")
        assert head.predict(np.eye(DIM)[:2]) == ["a", "b"] and head.predict_proba(np.eye(DIM)[:2]).max() < 0.99
    random = np.random.default_rng(4)
    vectors = random.normal(size=(220, DIM)) + np.eye(DIM)[[0] * 200 + [1] * 20]
    labels = ["often"] * 200 + ["rare"] * 20
    heads = (LinearClassifier.fit(vectors, labels, fingerprint="x", class_weight=w) for w in ("balanced", None))
    balanced, plain = (head.predict(vectors[200:]).count("rare") for head in heads)
    assert balanced > plain


SPELLINGS = {
    "billing": ["billing", "billing ", "Billing", "bil\u00adling", "\ufeffbilling", "billing\u200b"],
    "réseau": ["réseau", "re\u0301seau", "RÉSEAU", " réseau"],
    "log in": ["log in", "log\xa0in", "log  in", "\uff2c\uff4f\uff47 in"],
}


def test_spellings_of_a_label_are_one() -> None:
    for name, spellings in SPELLINGS.items():
        labels = [*spellings, spellings[0], "other", "other"]
        vectors = np.eye(DIM)[[0] * (len(labels) - 2) + [1, 1]]
        with pytest.warns(UserWarning, match=f"are one label: '{name}' \\(from ") as caught:
            head = LinearClassifier.fit(vectors, labels, fingerprint="x")
        assert head.labels == tuple(sorted([name, "other"])) and head.score(vectors, labels) == 1
        assert all(repr(one) in str(caught[0].message) or ascii(one) in str(caught[0].message) for one in spellings)
        with pytest.warns(UserWarning, match="are one label"):
            given = [spellings[1], "other"]
            head = LinearClassifier.from_descriptions(
                np.eye(DIM)[:2], given, fingerprint="", examples=vectors[:1], example_labels=[spellings[2]]
            )
        assert len(head.labels) == 2
    apart = ["1.1", "11", "a/b", "ab", "C", "C++", "👍", "👎", "é", "e"]  # of a label, signs and accents count
    assert len(LinearClassifier.from_descriptions(np.eye(10), apart, fingerprint="").labels) == 10
    assert LinearClassifier.from_descriptions(np.eye(2), ["A ", "b\u200b"], fingerprint="").labels == ("A", "b")


def test_repeated_examples_are_in_one_fold() -> None:
    """Otherwise each is held out beside its copy, and chance looks like knowledge."""
    random = np.random.default_rng(3)
    vectors, labels = np.repeat(random.normal(size=(60, 40)), 6, axis=0), [*"ab"] * 30
    head = LinearClassifier.fit(vectors, np.repeat(labels, 6).tolist(), fingerprint="x")
    assert head.choice and head.choice.accuracy < 0.7
    few = LinearClassifier.fit(np.eye(DIM)[[0] * 6 + [1] * 6], [*"aaaaaabbbbbb"], fingerprint="x")
    assert few.predict(np.eye(DIM)[:2]) == ["a", "b"]  # a label of one repeated text is in every fold


def test_unknown_is_what_is_unsure_or_far_or_has_no_words(head: LinearClassifier) -> None:
    between = np.array([[1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0], [0] * 6], np.float32)
    careful = LinearClassifier.fit(*make(), fingerprint="abc", unknown=0.6)
    for sure, unsure in ((careful.predict(between), head.predict(between)), (head.predict(between, unknown=0.6), None)):
        assert sure == [None, "animals", None]
        assert unsure is None or (unsure[0] in LABELS and unsure[2] is None)
    assert careful.predict(between, unknown=0)[0] in LABELS
    assert head.predict(between[:0]) == []
    vectors, labels = make(900, noise=0.2)
    head = LinearClassifier.fit(vectors[:90], labels[:90], fingerprint="abc")
    far = np.array([[0, 0, 0, 1, 2, 1], [-1, -1, -1, 0, 0, 0], [0] * 6, [1, 0, 0, 0, 0, 0]], np.float32)
    assert head.predict(far) == [None, None, None, "animals"]
    assert [probability is None for _, probability in head.answers(far)] == [True, True, True, False]
    assert [label is None for label in head.predict(far, unknown=0)] == [False, False, True, False]
    own = [label is None for label in head.predict(vectors[90:])]
    assert np.mean(own) < 0.02  # fewer: the training texts of a label are as near as translations
    vectors, labels = make(900)
    head = LinearClassifier.fit(vectors[:90], labels[:90], fingerprint="abc")
    own = [label is None for label in head.predict(vectors[90:])]
    assert 0.02 < np.mean(own) < 0.1  # about as often as of the training texts
    texts = ["...", "\N{THUMBS UP SIGN}" * 3, "2", "A"]  # as in an index, a text without letter or digit is none
    assert head.predict(np.eye(DIM)[[0, 0, 1, 2]], unknown=0, texts=texts) == [None, None, "money", "weather"]
    raises(ValueError, "4 texts for 2 vectors", head.predict, np.eye(DIM)[:2], texts=texts)
    pairs = LinearClassifier.fit(vectors.reshape(-1, 2, DIM), labels[::2], fingerprint="abc")
    assert None not in pairs.predict(-vectors.reshape(-1, 2, DIM))
    known = [label is not None for label in pairs.predict(vectors[:4].reshape(2, 2, DIM), texts=["a", "b", "c", "-"])]
    assert known == [True, False]


def test_what_cannot_be_fitted() -> None:
    for changed, error, message in [
        ({"labels": ["a", "a", "a", "a"]}, ValueError, "all examples are labelled 'a'; expected at least two"),
        ({"labels": ["a", "a", "a", "b"]}, ValueError, "only one example is labelled 'b'"),
        ({"labels": ["a", "b"]}, ValueError, "2 labels for 4 vectors"),
        ({"labels": ["a", "unknown"] * 2}, ValueError, "the label 'unknown' is reserved for texts that no label fits"),
        ({"labels": ["a", "Unknown "] * 2}, ValueError, "the label 'Unknown' is reserved"),
        ({"labels": [1, 1, 2, 2]}, TypeError, r"label 1 \(counted from 1\) is 1; drop the row, or convert it with str"),
        ({"vectors": np.empty((0, DIM)), "labels": []}, ValueError, "no examples"),
        ({"vectors": ["a text"] * 4}, TypeError, "encode texts first"),
        ({"vectors": np.eye(DIM)[0]}, ValueError, r"\[n, D\].*got \[6\]"),
        ({"vectors": np.zeros((4, 3, DIM))}, ValueError, r"pairs \[n, 2, D\]"),
        ({"vectors": np.full((4, DIM), np.nan)}, ValueError, "NaN"),
        ({"unknown": "half"}, TypeError, "unknown = 'half' must be a number"),
        ({"fingerprint": 5}, TypeError, "fingerprint = 5 must be a str, such as encoder.fingerprint"),
        ({"class_weight": "auto"}, ValueError, "'auto' must be None or 'balanced'"),
        ({"unknown": 1.5}, ValueError, r"unknown = 1\.5 must be between 0 and 1"),
    ]:
        arguments = {"vectors": np.eye(DIM)[:4], "labels": ["a", "a", "b", "b"], "fingerprint": "x", **changed}
        raises(error, message, LinearClassifier.fit, **arguments)


def test_a_damaged_note(head: LinearClassifier, tmp_path: Path) -> None:
    for change, message in [
        ({"format_version": 3}, "version 3, this xsent reads 2"),
        ({"format_version": 1}, "version 1, this xsent reads 2.*fit the head again"),
        ({"least": 7}, "not a cosine"),
        ({"labels": ["a", "b"]}, "for 2 labels and 6 features"),
        ({"labels": ["a", "a", "b"]}, "labels"),
        ({"pairs": True}, "24 features"),
        ({"choice": 3}, "damaged"),
        ({"unknown": "often"}, "damaged"),
        ({"more": 1}, "damaged"),
        *((content, "fit the head again") for content in ("[]", "{", "{}", "null")),
    ]:
        head.save(tmp_path / "topics.npz", force=True)
        note = tmp_path / "topics.json"
        note.write_text(change) if isinstance(change, str) else edit_json(note, **change)
        raises(DataError, message, LinearClassifier.load, tmp_path / "topics.npz", fingerprint="abc")


Arrays = dict[str, NDArray[Any]]


@pytest.mark.filterwarnings("ignore:divide")
def test_numbers_of_whoever_writes_both_files(head: LinearClassifier, tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    for change, save, message in [
        (lambda arrays: arrays, np.savez_compressed, "its arrays are compressed"),
        (lambda arrays: {**arrays, "more": np.zeros(10**6)}, np.savez, "8,.* bytes, expected at most"),
        (lambda arrays: {**arrays, "bias": np.full(3, np.nan, np.float32)}, np.savez, "bias contains something other"),
        (lambda arrays: {**arrays, "weight": arrays["weight"] / 0}, np.savez, "weight contains something other"),
        (lambda arrays: {**arrays, "bias": np.array(["a"] * 3)}, np.savez, "bias contains something other"),
        (lambda arrays: {**arrays, "bias": arrays["bias"][:2]}, np.savez, "weights"),
        (lambda arrays: {**arrays, "centres": arrays["centres"][:2]}, np.savez, "weights"),
        (lambda arrays: {"weight": arrays["weight"], "centres": arrays["centres"]}, np.savez, "bias"),
    ]:
        head.save(file, force=True)
        save(file, **change({"weight": head.weight, "bias": head.bias, "centres": head.centres}))
        edit_json(tmp_path / "a.json", sha256=file_digest(file))
        raises(DataError, rf"a\.npz: damaged \(.*{message}", LinearClassifier.load, file, fingerprint="abc")


def test_half_a_head_and_damaged_numbers(head: LinearClassifier, tmp_path: Path) -> None:
    saved, note = tmp_path / "topics.npz", tmp_path / "topics.json"
    for file in (saved, saved.with_name("again.npz")):
        head.save(file)
    content = saved.read_bytes()
    assert content == saved.with_name("again.npz").read_bytes()  # the files of a head never change
    flip_byte(saved, len(content) // 2)
    raises(DataError, r"topics\.npz.*checksum", LinearClassifier.load, saved, fingerprint="abc")
    for missing, there in ((saved, note), (note, saved)):
        missing.unlink()
        message = rf"{missing.name}: missing; a head is two files"
        raises(DataError, message, LinearClassifier.load, saved, fingerprint="abc")
        with pytest.raises(FileExistsError) as caught:
            head.save(saved)
        assert caught.value.filename == str(there) and not missing.exists()
        head.save(saved, force=True)
    assert file_names(tmp_path) == {"topics.npz", "topics.json", "again.npz", "again.json"}
    raises(DataError, r"no\.npz: no such file", LinearClassifier.load, tmp_path / "no.npz", fingerprint="abc")
    loaded = LinearClassifier.load(saved, fingerprint="abc")
    assert all(np.array_equal(getattr(loaded, name), value) for name, value in vars(head).items())
    raises(ValueError, r"topics: a head's name ends in \.npz", head.save, saved.with_suffix(""))


def test_described_labels_need_no_training_and_examples_refine_them(tmp_path: Path) -> None:
    described = LinearClassifier.from_descriptions(np.eye(DIM)[[2, 0, 1, 3]], ["c", "a", "b", "c"], fingerprint="abc")
    assert (described.labels, described.examples, described.choice) == (("a", "b", "c"), 0, None)
    texts = np.eye(DIM)[[0, 1, 2, 3, 5]] + 0.01
    assert described.predict(texts) == ["a", "b", "c", "c", None]
    assert described.predict(texts, unknown=0)[4] is not None
    centres = np.array([np.eye(DIM)[0], np.eye(DIM)[1], (np.eye(DIM)[2] + np.eye(DIM)[3]) / np.sqrt(2)])
    scores = np.exp(16 * (texts / np.linalg.norm(texts, axis=1, keepdims=True)) @ centres.T)
    assert described.predict_proba(texts) == pytest.approx(scores / scores.sum(axis=1, keepdims=True), abs=1e-5)
    described.save(tmp_path / "a.npz")
    assert LinearClassifier.load(tmp_path / "a.npz", fingerprint="abc").predict(texts) == described.predict(texts)
    vectors, labels = make(90, noise=0.3)
    wrong = np.eye(DIM)[[1, 2, 0]]  # descriptions that mislead, outweighed by thirty examples each
    head = LinearClassifier.from_descriptions(wrong, LABELS, fingerprint="abc", examples=vectors, example_labels=labels)
    assert head.score(vectors, labels) > 0.85 and head.examples == 90
    empty = LinearClassifier.from_descriptions(
        np.eye(DIM)[:3], LABELS, fingerprint="", examples=np.zeros((1, DIM)), example_labels=LABELS[:1]
    )
    plain = LinearClassifier.from_descriptions(np.eye(DIM)[:3], LABELS, fingerprint="")
    assert empty.least == plain.least and np.array_equal(empty.predict_proba(texts), plain.predict_proba(texts))
    far = np.zeros((1, DIM))
    far[0, 5] = 1
    assert head.predict(far) == [None] and head.least > 0.3


def test_impossible_descriptions() -> None:
    for descriptions, labels, examples, message in [
        (np.eye(DIM)[:2], "a", "", "1 labels for 2 vectors"),
        (np.eye(DIM)[:2], "aa", "", "all examples are labelled 'a'"),
        (np.eye(DIM)[:2] * [[1], [0]], "ab", "", "the description of 'b' is empty"),
        (np.eye(DIM)[:2], "ab", "c", "the label 'c' of an example has no description"),
        (np.eye(DIM)[:2], "ab", "a", "1 labels for 0 examples"),
    ]:
        fit = LinearClassifier.from_descriptions
        raises(ValueError, message, fit, descriptions, [*labels], fingerprint="", example_labels=[*examples])
    short = {"examples": np.ones((1, 3)), "example_labels": ["a"]}
    raises(ValueError, "vectors of 3 and of 8 dimensions", fit, np.eye(8)[:2], ["a", "b"], fingerprint="", **short)


Data = tuple[NDArray[np.float64], NDArray[np.int64]]


def clouds(count: int = 150, noise: float = 2.0) -> Data:
    """Noisy points around one centre for each of three labels, which are not equally frequent."""
    random = np.random.default_rng(5)
    classes = np.minimum(random.integers(0, 4, count), 2)
    return random.normal(size=(3, 8))[classes] + noise * random.normal(size=(count, 8)), classes


def loss(model: Logistic, data: Data, l2: float, weights: NDArray[np.float64]) -> float:
    features, classes = data
    gold = log_softmax(model.scores(features))[np.arange(len(classes)), classes]
    return float(-weights @ gold / len(classes) + l2 / 2 * (model.weight**2).sum())


@pytest.mark.slow
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("l2", [1.0, 0.03, 0.001])
def test_the_optimum_is_that_of_scikit_learn(l2: float, balanced: bool) -> None:
    features, classes = data = clouds()
    n = len(classes)
    weights = n / (3 * np.bincount(classes)[classes]) if balanced else np.ones(n)
    sklearn = pytest.importorskip("sklearn.linear_model")
    theirs = sklearn.LogisticRegression(C=1 / (l2 * n), tol=1e-8, max_iter=5000)
    theirs.fit(features, classes, sample_weight=weights)
    reference = loss(Logistic(theirs.coef_, theirs.intercept_), data, l2, weights)
    ours = fit_logistic(features, classes, l2=l2, weights=weights)
    assert loss(ours, data, l2, weights) == pytest.approx(reference, abs=1e-5)
    assert (ours.scores(features).argmax(axis=1) == theirs.predict(features)).mean() > 0.98


def test_few_steps_are_told_and_few_predictions_prove_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "_ITERATIONS", 2)
    with pytest.warns(RuntimeWarning, match="did not converge in 2 steps"):
        fit_logistic(*clouds(), l2=0.001)
    # By Laplace's rule 1 of 6 examples counts half for each class: the probability is 11/12.
    scores = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]])
    temperature = logistic.fit_temperature(scores, np.array([0, 0, 1, 1]), np.ones(4))
    assert np.exp(log_softmax(scores / temperature)).max() == pytest.approx(11 / 12, abs=1e-4)


@settings(max_examples=50, deadline=None)
@given(counts=st.lists(st.integers(2, 13), min_size=2, max_size=6), seed=st.integers(0, 9))
def test_folds_are_even_and_never_lack_a_class(counts: list[int], seed: int) -> None:
    classes = np.repeat(np.arange(len(counts)), counts)
    folds = logistic.stratified_folds(classes, seed=seed)
    sizes = np.bincount(folds)
    assert len(sizes) == min(5, len(classes))
    assert np.ptp(sizes) <= 1
    for fold in range(len(sizes)):
        assert set(classes[folds != fold]) == set(classes)
    for label in range(len(counts)):
        assert np.ptp(np.bincount(folds[classes == label], minlength=len(sizes))) <= 1
    assert np.array_equal(folds, logistic.stratified_folds(classes, seed=seed))
    many = np.arange(60) % 3
    first, second = (logistic.stratified_folds(many, seed=seed + more) for more in (0, 1))
    assert not np.array_equal(first, second)


def test_cross_validation_finds_what_generalises() -> None:
    features, classes = clouds(3000, noise=3.0)
    x, y, fresh, gold = features[:150], classes[:150], features[150:], classes[150:]
    choice = logistic.cross_validate(x, y, np.ones(150), seed=0)
    assert choice == logistic.cross_validate(x, y, np.ones(150), seed=0)
    losses = {}
    for l2 in logistic.STRENGTHS:
        scores = fit_logistic(x, y, l2=l2).scores(fresh)
        losses[l2] = -log_softmax(scores)[np.arange(len(gold)), gold].mean()
    assert losses[choice.l2] < min(losses.values()) + 0.02
    assert losses[choice.l2] < losses[logistic.STRENGTHS[-1]]
    points = np.random.default_rng(3).normal(size=(80, 30))
    noise = logistic.cross_validate(points, np.arange(80) % 2, np.ones(80), seed=0)
    assert noise.l2 == logistic.STRENGTHS[0] and noise.log_loss == pytest.approx(np.log(2), abs=0.05)
