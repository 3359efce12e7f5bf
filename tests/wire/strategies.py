"""Hypothesis strategies for all messages of the executor protocol."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from luciole.model.ids import ExecutionKey
from luciole.model.job import RunIn
from luciole.model.outbox import AttemptOutcome, Report
from luciole.wire.messages import (
    Acknowledge,
    Beat,
    BeatAnswer,
    Cancel,
    Confirm,
    Deliver,
    Delivered,
    Demand,
    Drain,
    Grant,
    Held,
    Hello,
    Message,
    Refuse,
    Reports,
    Verdict,
    Welcome,
)

BIG = 2**62

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-BIG, BIG)
counts = st.integers(0, 2**31)
instants = st.integers(-(2**60), 2**60)
keys = st.builds(ExecutionKey, st.integers(0, 4_095), st.integers(0, BIG), instants, numbers)
tokens = st.tuples(keys, counts)
labels = st.lists(st.tuples(texts, texts), max_size=3).map(tuple)


def _many(one: SearchStrategy[object]) -> SearchStrategy[tuple[object, ...]]:
    return st.lists(one, max_size=6).map(tuple)


held = st.builds(Held, keys, counts, st.none() | instants, st.none() | texts)
delivered = st.builds(
    Delivered,
    keys,
    counts,
    st.sampled_from(["charge", "report", "übung"]) | texts,
    st.binary(max_size=20),
    st.sampled_from(["application/json", ""]),
    instants,
    instants,
    st.none() | counts,
    st.none() | instants,
    st.none() | st.sampled_from(RunIn),
)
reports = st.builds(
    Report,
    keys,
    counts,
    st.sampled_from(AttemptOutcome),
    st.none() | instants,
    instants,
    st.none() | st.binary(max_size=20),
    st.none() | texts,
    st.none() | texts,
    st.none() | counts,
    st.booleans(),
)
messages: SearchStrategy[Message] = st.one_of(
    st.builds(
        Hello,
        protocol_min=counts,
        protocol_max=counts,
        executor_id=texts,
        namespace=texts,
        handlers=_many(texts),
        slots=counts,
        labels=labels,
        held=_many(held),
        token=st.none() | texts,
        host=texts,
        pid=counts,
    ),
    st.builds(
        Welcome,
        protocol=counts,
        node_id=texts,
        now_us=instants,
        session_ttl_us=counts,
        peers=_many(texts),
        kept=_many(tokens),
    ),
    st.builds(Refuse, code=texts, message=texts),
    st.builds(Grant, credits=numbers),
    st.builds(Deliver, attempts=_many(delivered)),
    st.builds(Acknowledge, attempts=_many(tokens)),
    st.builds(Reports, reports=_many(reports)),
    st.builds(Confirm, verdicts=_many(st.tuples(keys, counts, st.sampled_from(Verdict)))),
    st.builds(Beat, held=_many(held), number=counts),
    st.builds(BeatAnswer, now_us=instants, number=counts, peers=_many(texts), kept=_many(tokens)),
    st.builds(Cancel, attempts=_many(tokens), reason=texts, hard=st.booleans()),
    st.builds(Demand, waiting=counts, unused=counts),
    st.builds(Drain, grace_us=counts),
)
frames = st.lists(messages, max_size=5)
