"""P3, section 3: could-result-in, its transitivity, and its closure."""

from collections import Counter
from itertools import product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from support.timely import paper
from support.timely.dataflows import (
    KINDS,
    arbitrary,
    arbitrary_dataflows,
    dataflows,
    drawn,
    kind_of,
)

from cutwater.semantics.timely.clock import close, least, reached
from cutwater.semantics.timely.conditions import condition_1, condition_2
from cutwater.semantics.timely.dataflow import precedes
from cutwater.semantics.timely.relation import CouldResultIn, could_result_in
from cutwater.times import check_order, rounds_of


def stamps(dataflow):
    return [(x, t) for x in dataflow.graph.locations for t in dataflow.times]


@settings(max_examples=25)
@given(st.integers(0, 400))
def test_definition_2_by_the_letter(seed):
    dataflow = arbitrary(Random(seed))
    if len(dataflow.processors) > 3:
        return
    relation = could_result_in(dataflow)
    for stamp in stamps(dataflow):
        assert set(relation.after(stamp)) == paper.could_result_in(dataflow, stamp)


def is_contained(dataflow, after):
    """Is a relation contained in the one from the summaries, where times suit their locations?"""
    graph = dataflow.graph
    return all(
        graph.could_result_in(x, t, y, u)
        for x, t in stamps(dataflow)
        if len(rounds_of(t)) == graph.depth[x]
        for y, u in after((x, t))
    )


@settings(max_examples=60)
@given(dataflows())
def test_the_relation_from_summaries_contains_that_of_the_processors(case):
    dataflow, relation = case
    assert is_contained(dataflow, relation.after)


def test_a_third_of_the_dataflows_is_cyclic_and_not_transitive():
    kinds = Counter(kind_of(*drawn(seed, kind)) for seed in range(20) for kind in KINDS)
    assert kinds == dict.fromkeys(KINDS, 20)


def closure_of(relation):
    """The mutant: a closure instead of simple paths."""
    return CouldResultIn(
        {a: {b: (a[0], b[0]) for b in close(relation, [a])} for a in relation.proofs}
    )


def test_a_closure_instead_of_simple_paths_is_not_contained_and_breaks_theorem_1():
    refuted = Counter()
    for seed in range(20):
        dataflow, relation = drawn(seed, "intransitive")
        mutant = closure_of(relation)
        refuted["containment"] += not is_contained(dataflow, mutant.after)
        refuted["theorem 1"] += (mutant.intransitive is None) != (
            not condition_2(dataflow, relation)
        )
    assert refuted["theorem 1"] == 20
    assert refuted["containment"] > 0


@settings(max_examples=60)
@given(dataflows())
def test_proposition_1_1_a_proof_from_a_node_begins_with_a_shorter_one_from_its_edge(case):
    dataflow, relation = case
    for processor in dataflow.processors:
        for t in dataflow.times:
            for e, u in relation.after((processor.name, t)):
                if e in dataflow.edge_number:
                    whole = relation.path((processor.name, t), (e, u))
                    assert any(
                        relation((processor.name, t), (edge.name, v))
                        and relation((edge.name, v), (e, u))
                        and len(relation.path((edge.name, v), (e, u))) < len(whole)
                        for edge in dataflow.outgoing(processor.name)
                        for v in dataflow.times
                    )


@given(arbitrary_dataflows())
def test_proposition_1_2_at_one_location_it_is_the_order_of_times(dataflow):
    relation = could_result_in(dataflow)
    for x in dataflow.graph.locations:
        for t, u in product(dataflow.times, repeat=2):
            assert relation((x, t), (x, u)) == precedes(t, u)


@given(arbitrary_dataflows())
def test_proposition_1_3_it_is_kept_by_earlier_causes_and_later_effects(dataflow):
    relation = could_result_in(dataflow)
    for (x, t), (y, u) in product(stamps(dataflow), repeat=2):
        if relation((x, t), (y, u)):
            assert all(relation((x, s), (y, u)) for s in dataflow.times if precedes(s, t))
            assert all(relation((x, t), (y, v)) for v in dataflow.times if precedes(u, v))


@settings(max_examples=60)
@given(dataflows())
def test_theorem_1_transitive_if_and_only_if_condition_2(case):
    dataflow, relation = case
    assert (relation.intransitive is None) == (not condition_2(dataflow, relation))


@given(arbitrary_dataflows())
def test_theorem_1_for_processors_that_send_anything_in_several_domains(dataflow):
    relation = could_result_in(dataflow)
    assert (relation.intransitive is None) == (not condition_2(dataflow, relation))


def test_theorem_1_is_tested_in_both_directions():
    verdicts = Counter(
        could_result_in(arbitrary(Random(seed))).intransitive is None for seed in range(100)
    )
    assert min(verdicts[True], verdicts[False]) > 20


@settings(max_examples=60)
@given(dataflows())
def test_a_triple_that_is_not_transitive_is_one(case):
    _, relation = case
    if relation.intransitive:
        a, b, c = relation.intransitive
        assert relation(a, b)
        assert relation(b, c)
        assert not relation(a, c)


@given(arbitrary_dataflows())
def test_proposition_2_an_embedding_exists_if_and_only_if_transitive(dataflow):
    relation = could_result_in(dataflow)
    universal = relation.embedding()
    assert (universal is None) == (relation.intransitive is not None)
    if universal is not None:
        for a, b in product(stamps(dataflow), repeat=2):
            assert (universal[a] <= universal[b]) == relation(a, b)


def test_proposition_2_embeds_into_a_partial_order_and_identifies_equivalent_pointstamps():
    shared = 0
    for seed in range(60):
        relation = could_result_in(arbitrary(Random(seed)))
        if universal := relation.embedding():
            images = set(universal.values())
            shared += len(images) < len(universal)
            check_order(sorted(images, key=lambda image: len(image.later))[:20])
    assert shared > 0


@given(arbitrary_dataflows(), st.integers(0, 2**32))
def test_proposition_3_under_condition_2_the_closure_is_one_step(dataflow, seed):
    relation = could_result_in(dataflow)
    chosen = Random(seed).sample(stamps(dataflow), 2)
    closed, formula = close(relation, chosen), reached(relation, chosen)
    assert formula <= closed
    if not condition_2(dataflow, relation):
        assert formula == closed
        # under Condition 2 the minimal pointstamps may stand for all, one of each class
        assert reached(relation, least(relation, closed)) == closed


def test_proposition_3_needs_condition_2():
    seen = Counter()
    for seed in range(100):
        dataflow = arbitrary(Random(seed))
        relation = could_result_in(dataflow)
        for stamp in stamps(dataflow):
            if close(relation, [stamp]) != reached(relation, [stamp]):
                seen["differs"] += 1
                assert condition_2(dataflow, relation)
        if relation.intransitive:
            a, b, c = relation.intransitive
            seen["minimal ones lose some"] += c not in reached(relation, least(relation, [b, c, a]))
    assert seen["differs"] > 0
    assert seen["minimal ones lose some"] > 0


@settings(max_examples=30)
@given(dataflows())
def test_processors_that_request_only_later_times_keep_condition_1(case):
    dataflow, _ = case
    assert condition_1(dataflow) == []
