"""What a reduced search leaves out, no observer can miss."""

import random
from itertools import combinations

import pytest
from support.checking.random_systems import random_system
from support.models.broken import (
    UNSAFE,
    ForgetsInputs,
    RecoversOnlyTheFailed,
    StarvesTheLast,
)
from support.models.networks import Network
from support.models.observed import graph, sequences
from support.models.shapes import PIPELINE, start
from support.models.variants import MODELS
from support.models.variants import PROTOCOLS as VARIANTS

from cutwater.checking import always, check_model, failure_transparency
from cutwater.semantics.barrier_model import BarrierModel, Barriers
from cutwater.semantics.barriers import Graph, initial_configuration

PROTOCOLS = [
    Barriers,
    *UNSAFE.values(),
    ForgetsInputs,
    RecoversOnlyTheFailed,
    StarvesTheLast,
]


def shuffled(c, drawn):
    """The same system with its tasks in any order, as nobody builds it."""
    tasks = list(c.graph.tasks)
    drawn.shuffle(tasks)
    inputs = {}
    for m in sorted(c.inputs, key=lambda m: m.n):
        epochs = inputs.setdefault(m.stream, [[]])
        if hasattr(m.content, "payload"):
            epochs[-1].append(m.content.payload)
        else:
            epochs.append([])
    return initial_configuration(Graph(tuple(tasks)), {s: e[:-1] for s, e in inputs.items()})


def small_models(protocol, seeds, *, most=700):
    for seed in seeds:
        drawn = random.Random(seed)
        c = random_system(drawn, tasks=3, sources=2, epochs=2, events=drawn.choice([1, 1, 2]))
        c = shuffled(c, drawn) if seed % 3 == 0 else c
        model = BarrierModel(c, crashes=drawn.choice([0, 1, 1, 2]), protocol=protocol())
        if check_model(model, reduce=False, max_states=most).is_exhaustive:
            yield model


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.__name__)
def test_a_reduced_search_shows_every_sequence_of_observations(protocol):
    tried = smaller = 0
    count = 60 if protocol is Barriers else 10
    for model in small_models(protocol, range(count)):
        assert sequences(model, reduce=True) == sequences(model, reduce=False)
        tried += 1
        smaller += len(graph(model, reduce=True)) < len(graph(model, reduce=False))
    assert tried > count * 0.5
    assert (smaller > 20) == (protocol is Barriers)


def methods(cls):
    return {name for name in vars(cls) if callable(getattr(cls, name)) and name[:2] != "__"}


def test_there_is_a_variant_for_each_method_of_the_protocol():
    assert VARIANTS.keys() == methods(Barriers)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_variant_of_the_protocol_is_not_reduced(variant):
    """Regression: with what is true of the rules alone, half of the systems showed less."""
    for model in small_models(variant, range(15)):
        assert not check_model(model).is_reduced
        assert sequences(model, reduce=True) == sequences(model, reduce=False)
        verdicts = {
            failure_transparency(model, model.failure_free(), reduce=reduce).holds
            for reduce in (True, False)
        }
        assert len(verdicts) == 1


@pytest.mark.parametrize("variant", MODELS.values(), ids=MODELS)
def test_a_variant_of_the_model_shows_as_much_reduced_as_in_full(variant):
    for model in small_models(Barriers, range(15)):
        other = variant(model.initial, crashes=model.crashes)
        assert sequences(other, reduce=True) == sequences(other, reduce=False)


def test_a_rule_replaced_in_the_object_itself_counts_as_overridden():
    protocol = Barriers()
    protocol.recover = lambda c: c
    model = BarrierModel(start(PIPELINE, x=[[1]]), protocol=protocol)
    assert not check_model(model).is_reduced
    assert check_model(BarrierModel(start(PIPELINE, x=[[1]]))).is_reduced


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.__name__)
def test_a_reduced_search_comes_to_the_same_verdict(protocol):
    for model in small_models(protocol, range(100, 130 if protocol is Barriers else 110)):
        verdicts = {
            failure_transparency(model, model.failure_free(), reduce=reduce).holds
            for reduce in (True, False)
        }
        assert len(verdicts) == 1
        assert protocol is not Barriers or verdicts == {True}


@pytest.mark.parametrize("is_acyclic", [True, False], ids=["acyclic", "with cycles"])
def test_independence_alone_gives_a_sound_reduction(is_acyclic):
    smaller = 0
    for seed in range(250):
        model = Network(random.Random(seed), is_acyclic=is_acyclic)
        full, reduced = graph(model, reduce=False), graph(model, reduce=True)
        assert reduced.keys() <= full.keys()
        assert sequences(model, reduce=True) == sequences(model, reduce=False), seed
        smaller += len(reduced) < len(full)
    assert smaller > 25


class Jointly(Network):
    """An observer sees whether two things are so at once, or a sum: no part by itself."""

    def __init__(self, drawn, *, is_acyclic):
        super().__init__(drawn, is_acyclic=is_acyclic)
        self.kind = drawn.choice(["all", "sum", "places"])

    def observation(self, state):
        places, counters = state
        if self.kind == "places":
            return places[0] > 0 and places[1] > 0
        return all(counters) if self.kind == "all" else sum(counters) > 1


@pytest.mark.parametrize("is_acyclic", [True, False], ids=["acyclic", "with cycles"])
def test_what_is_seen_later_is_not_put_first(is_acyclic):
    """A step that shows nothing now shows something once another process has gone on."""
    smaller = 0
    for seed in range(150):
        model = Jointly(random.Random(seed), is_acyclic=is_acyclic)
        assert sequences(model, reduce=True) == sequences(model, reduce=False), seed
        smaller += len(graph(model, reduce=True)) < len(graph(model, reduce=False))
    assert smaller > 15


def test_independence_alone_reduces_the_barrier_model_soundly():
    """The model's own ample sets are hidden."""
    smaller = 0
    for model in small_models(Barriers, range(200, 240), most=300):
        bare = WithoutAmple(model)
        assert sequences(bare, reduce=True) == sequences(bare, reduce=False)
        smaller += len(graph(bare, reduce=True)) < len(graph(bare, reduce=False))
    assert smaller > 3


class WithoutAmple:
    is_acyclic = True

    def __init__(self, model):
        self.initial_states, self.actions = model.initial_states, model.actions
        self.step, self.observation = model.step, model.observation
        self.independent = model.independent


def commute_everywhere(model):
    """How many pairs of independent actions were possible together; all of them commute."""
    pairs = 0
    for state in graph(model, reduce=False):
        for a, b in combinations(model.actions(state), 2):
            assert model.independent(a, b) == model.independent(b, a)
            if not model.independent(a, b):
                continue
            pairs += 1
            after_a, after_b = model.step(state, a), model.step(state, b)
            assert b in model.actions(after_a)
            assert a in model.actions(after_b)
            assert model.step(after_a, b) == model.step(after_b, a)
    return pairs


# which barriers (b) takes depends on what has come so far: its barrier moves are not the same move
LOCAL = [protocol for protocol in PROTOCOLS if protocol is not UNSAFE["b"]]


@pytest.mark.parametrize("protocol", LOCAL, ids=lambda p: p.__name__)
def test_independent_moves_commute_and_leave_each_other_possible(protocol):
    assert sum(map(commute_everywhere, small_models(protocol, range(300, 320)))) > 100


def test_independent_steps_of_the_toy_networks_commute():
    networks = (Network(random.Random(seed), is_acyclic=False) for seed in range(60))
    assert sum(map(commute_everywhere, networks)) > 300


def test_no_action_is_independent_of_itself():
    model = BarrierModel(start(PIPELINE, x=[[1]]), crashes=1)
    (point,) = model.initial_states()
    assert not any(model.independent(move, move) for move in model.actions(point))


def test_the_reduction_is_worth_it():
    """Three tasks, two epochs of five events: a tenth of the states at most."""
    model = BarrierModel(start(PIPELINE, x=[[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]))
    full, reduced = check_model(model, reduce=False), check_model(model, reduce=True)
    assert (full.unique_states, reduced.unique_states) == (455, 37)
    assert full.unique_states > 10 * reduced.unique_states
    claims = [always("nothing", bool, observed=True)]
    assert check_model(model, claims).is_reduced


def test_a_reduced_search_is_only_for_what_is_observed():
    """A claim of the states themselves is looked at in every state."""
    model = BarrierModel(start(PIPELINE, x=[[1], [2]]))
    inner = always("of states", lambda point: True)
    seen = always("of observations", lambda out: True, observed=True)
    assert check_model(model, [seen]).is_reduced
    assert not check_model(model, [inner]).is_reduced
    assert not check_model(model, [inner, seen]).is_reduced
    assert not check_model(model, [seen], reduce=False).is_reduced
    assert check_model(model, [inner]).unique_states > check_model(model, [seen]).unique_states
