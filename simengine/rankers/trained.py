"""BPR and SASRec as cornac trains them: models that know the users and items of the training part, and no others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset, Interaction
from simengine.errors import InputError
from simengine.rankers.optional import require

if TYPE_CHECKING:
    from cornac.models import BPR as CornacBPR
    from cornac.models import SASRec as CornacSASRec

_SEEDS = 2**32  # numpy's older generators, which cornac uses, take seeds below this
_LONGEST = 50
_BATCH = 128


class BPR:
    """Matrix factorisation with item biases, trained on pairs of a taken and another item (Rendle et al., 2009).

    ``factors`` 32, ``epochs`` 200 of plain SGD in one thread at ``learning_rate`` 0.05 with L2 0.01, over the training
    part with each pair of user and item once (cornac's own rate, 0.001, leaves factors of small data as they were
    drawn). Equal seeds give equal scores on one machine. Users are scored as they were in training: a case's history
    is not looked at. NaN where nothing was learnt to score by: for an item that the training part does not hold, and
    for all candidates of a user whom it does not hold.
    """

    name = "bpr"

    def __init__(self, *, factors: int = 32, epochs: int = 200, learning_rate: float = 0.05, seed: int = 0) -> None:
        require(self.name, "cornac")
        self._settings = {"k": factors, "max_iter": epochs, "learning_rate": learning_rate, "seed": seed % _SEEDS}
        self._model: CornacBPR | None = None
        self._users: Mapping[str, int] = {}
        self._items: Mapping[str, int] = {}

    def fit(self, dataset: Dataset) -> None:
        """Train a new model."""
        from cornac.data import Dataset as Pairs
        from cornac.models import BPR as CornacBPR

        pairs = dict.fromkeys((row.user, row.item) for row in _training_part(self.name, dataset))
        data = Pairs.from_uir([(user, item, 1.0) for user, item in pairs])
        self._model = CornacBPR(lambda_reg=0.01, **self._settings).fit(data)
        self._users, self._items = data.uid_map, data.iid_map

    def score(self, case: Case, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Products of the user's factors with the candidates', plus their biases."""
        if self._model is None:
            raise RuntimeError("BPR scores by a trained model: call fit first")
        if case.user not in self._users:
            return np.full(len(candidates), np.nan)
        return _of(self._model.score(self._users[case.user]), self._items, candidates)


class SASRec:
    """Self-attention over the sequence of past items (Kang and McAuley, 2018).

    ``factors`` 64, two blocks of one head, dropout 0.2, Adam at 0.001 in batches of 128, softmax loss against the
    batch's own targets and 256 items drawn uniformly, at most the last 50 items of a sequence. It trains for so many
    passes over the data as make at least ``updates`` 1000 steps, which small data need and large ones can bear: 250
    passes over AgentCF's hundred users, two over MovieLens-100K. ``positions=False`` trains without embeddings of
    positions.

    It trains on each user's training part in order and scores from the case's history, whoever the user is; items that
    training has not seen are left out of it. Trained in one thread, so that equal seeds give equal scores on one
    machine. NaN for an item that the training part does not hold, and for all candidates where it holds nothing of the
    history.
    """

    name = "sasrec"

    def __init__(self, *, factors: int = 64, updates: int = 1000, positions: bool = True, seed: int = 0) -> None:
        require(self.name, "cornac", "torch")
        self._settings = {"embedding_dim": factors, "use_pos_emb": positions, "seed": seed % _SEEDS}
        self._updates = updates
        self._model: CornacSASRec | None = None
        self._items: Mapping[str, int] = {}

    def fit(self, dataset: Dataset) -> None:
        """Train a new model."""
        from cornac.data import SequentialDataset
        from cornac.models import SASRec as CornacSASRec

        rows = _training_part(self.name, dataset)
        data = SequentialDataset.from_usit([(row.user, row.user, row.item, at) for at, row in enumerate(rows)])
        lengths = [len(taken) for taken in data.sessions.values()]
        steps = math.ceil(sum(length - 1 for length in lengths) / _BATCH)  # one example for each item but the first
        longest = max([*lengths, *(len(case.history) for case in dataset.cases)])
        model = CornacSASRec(
            **self._settings,
            n_epochs=math.ceil(self._updates / max(steps, 1)),
            batch_size=_BATCH,
            n_sample=256,
            sample_alpha=0.0,
            max_len=min(longest, _LONGEST),
        )
        with _one_thread():
            self._model = model.fit(data)
        self._items = data.iid_map

    def score(self, case: Case, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Products of what the history comes to with the candidates' embeddings."""
        if self._model is None:
            raise RuntimeError("SASRec scores by a trained model: call fit first")
        history = [self._items[item] for item in case.history if item in self._items]
        if not history:
            return np.full(len(candidates), np.nan)
        return _of(np.atleast_1d(self._model.score(None, history)), self._items, candidates)


def _training_part(ranker: str, dataset: Dataset) -> Sequence[Interaction]:
    part = list(dataset.training_part)
    if not part:
        raise InputError(
            f"the training part of {dataset.name} is empty, so {ranker} has nothing to learn from",
            field="rankers",
            value=ranker,
            remedy="leave this ranker out, or split the data so that users keep items to train on",
        )
    return part


def _of(scores: NDArray[np.float32], numbers: Mapping[str, int], items: Sequence[str]) -> NDArray[np.float64]:
    """The scores of these items, NaN where a model has no number for one."""
    return np.array([scores[numbers[item]] if item in numbers else np.nan for item in items], np.float64)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch add up in one order, which is also faster for models so small, and leave its global generator alone."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)
