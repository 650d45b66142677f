"""Timely dataflow: the model of P3, executable.

Imports the leaves and `progress`. Begin with `dataflow`, then `actions`.

=====================================  =====================================================
P3                                     here
=====================================  =====================================================
messages M, times T, time(m)           `dataflow.Message`, ``Dataflow.messages``, ``.times``
edges I, E, O; src, dst                ``Dataflow.inputs``, ``.internal``, ``.outputs``; `Edge`
node p, Initial(p), g1(p)              `dataflow.Processor`
events (d, m) and t                    `dataflow.Received`, `dataflow.Notified`
Histories(p), g(p)                     `dataflow.History`, `dataflow.local_result`
buffer node                            `dataflow.buffer`, `dataflow.is_buffer`
⤳¹ (Def. 1), ⤳ (Def. 2), ⤳_N (Def. 3)  `behaviour.one_step`, `relation.could_result_in`,
                                       `behaviour.requested`
Conditions 1 and 2                     `conditions.condition_1`, `conditions.condition_2`
Theorem 1, Proposition 2               ``CouldResultIn.intransitive``, ``.embedding``
Close↑, Clock, Proposition 3           `clock.close`, `clock.Clock`, `clock.ReachedClock`
LocState, NotRequests, Q               `actions.Configuration`: states, requests, queues
Mess, Not, Inp, Outp                   `actions.receive`, `.notify`, `.change_inputs`,
                                       `.change_outputs`
InitProp, ISpec                        `model.TimelyModel`
§4.3, Spec₁₂, Acts                     `composition.Composite`
§3.4, recursion                        `recursion.Recursion`
=====================================  =====================================================

Where we interpret the paper (2026-11-18):

- T, M and the local states are finite here. ⤳¹ is taken from the states that are reachable under
  every event, requested or not, as in Definition 1; Definition 3 from the reachable pairs of a
  state and its pending requests.
- Definition 2 is computed along simple paths. As a closure it would always be transitive, and
  Theorem 1 would say nothing.
- Clock is the fixed point Close↑. Proposition 8 then needs Condition 1 alone; a violation of
  Condition 2 alone shows with the clock of Proposition 3's formula (`clock.ReachedClock`).
- One Inp adds one message here, at the end of a queue; several are several steps. The function
  `actions.change_inputs` has the paper's full premise.
- The first-difference test of §3.4 is incomplete where a call lies on a cycle of the body; see
  `recursion`.
"""

__all__: list[str] = []
