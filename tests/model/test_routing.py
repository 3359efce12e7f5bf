from hypothesis import given
from hypothesis import strategies as st

from luciole.model.routing import Line, Offer, Route, assign, can_serve

ROUTES = [
    Route("default", "a"),
    Route("default", "b"),
    Route("other", "a"),
    Route("default", "a", frozenset({("gpu", "yes")})),
]


def an_offer(
    credits_: int, *handlers: str, labels: tuple[tuple[str, str], ...] = (), namespace: str = "default"
) -> Offer:
    return Offer(f"{credits_}", namespace, frozenset(handlers), frozenset(labels), credits_)


def test_a_session_serves_what_it_knows_in_its_namespace_with_its_labels() -> None:
    offer = an_offer(1, "a", labels=(("gpu", "yes"), ("zone", "eu")))
    assert [can_serve(offer, route) for route in ROUTES] == [True, False, False, True]
    assert not can_serve(an_offer(1, "a"), ROUTES[3])


def test_the_higher_priority_goes_first() -> None:
    lines = [Line(ROUTES[0], 1, 10), Line(ROUTES[0], 9, 3), Line(ROUTES[0], 5, 10)]
    assert assign(lines, [an_offer(5, "a")]) == [(0, 1, 3), (0, 2, 2)]


def test_sessions_share_a_line_evenly_up_to_their_credits() -> None:
    offers = [an_offer(100, "a"), an_offer(2, "a"), an_offer(100, "a")]
    shares = assign([Line(ROUTES[0], 5, 20)], offers)
    assert sorted(share.entries for share in shares) == [2, 9, 9]


def test_lines_of_one_priority_share_the_credits() -> None:
    """Goal: a long line does not starve a short one of the same priority."""
    lines = [Line(ROUTES[0], 5, 1_000), Line(ROUTES[1], 5, 1_000)]
    shares = assign(lines, [an_offer(10, "a", "b")])
    assert {share.line: share.entries for share in shares} == {0: 5, 1: 5}


def test_what_one_line_leaves_over_goes_to_the_other() -> None:
    lines = [Line(ROUTES[0], 5, 1_000), Line(ROUTES[1], 5, 1)]
    for turn in range(4):
        given_ = [0, 0]
        for share in assign(lines, [an_offer(10, "a", "b")], turn=turn):
            given_[share.line] += share.entries
        assert given_ == [9, 1]


def test_the_turn_moves_the_remainder_on() -> None:
    offers = [an_offer(10, "a"), an_offer(10, "a")]
    first = {assign([Line(ROUTES[0], 5, 1)], offers, turn=turn)[0].offer for turn in range(2)}
    assert first == {0, 1}


OFFERS = st.lists(
    st.builds(
        Offer,
        st.sampled_from(["x", "y"]),
        st.sampled_from(["default", "other"]),
        st.frozensets(st.sampled_from(["a", "b"])),
        st.frozensets(st.just(("gpu", "yes"))),
        st.integers(0, 30),
    ),
    max_size=5,
)
LINES = st.lists(st.builds(Line, st.sampled_from(ROUTES), st.integers(0, 9), st.integers(1, 40)), max_size=6)


@given(LINES, OFFERS, st.integers(0, 9))
def test_nothing_is_promised_twice_and_nothing_idles_beside_work(
    lines: list[Line], offers: list[Offer], turn: int
) -> None:
    free = [offer.credits for offer in offers]
    left = [line.waiting for line in lines]
    for share in assign(lines, offers, turn=turn):
        assert share.entries > 0
        assert can_serve(offers[share.offer], lines[share.line].route)
        free[share.offer] -= share.entries
        left[share.line] -= share.entries
    assert min([*free, *left], default=0) >= 0
    # No session keeps credits while something that it can serve waits.
    assert not [
        (offer, line)
        for offer, credits_ in zip(offers, free, strict=True)
        for line, waiting in zip(lines, left, strict=True)
        if credits_ and waiting and can_serve(offer, line.route)
    ]
