"""How slots are shared among nodes: never more than there are, and they follow demand."""

from hypothesis import given
from hypothesis import strategies as st

from luciole.executor.credits import Account, balance

accounts = st.lists(
    st.builds(
        Account,
        granted=st.integers(0, 50),
        recalled=st.just(0),
        waiting=st.integers(0, 100),
        open=st.booleans(),
    ),
    max_size=6,
)


@given(st.integers(-10, 200), accounts)
def test_what_is_granted_is_free_and_what_is_asked_back_was_granted(free: int, nodes: list[Account]) -> None:
    changes = balance(free, nodes)
    assert len(changes) == len(nodes)
    assert sum(change for change in changes if change > 0) <= max(free, 0)
    for change, node in zip(changes, nodes, strict=True):
        assert change >= -node.granted
        assert change <= 0 or node.open


@given(st.integers(0, 200), accounts)
def test_once_credits_have_moved_nothing_moves_any_more(free: int, nodes: list[Account]) -> None:
    """Goal: nodes do not pass credits to and fro. Method: let each answer at once until nothing changes."""
    for _ in range(10):
        changes = balance(free, nodes)
        if not any(changes):
            break
        for change, node in zip(changes, nodes, strict=True):
            node.granted += change
            free -= change
    assert balance(free, nodes) == [0] * len(nodes)
    assert free == 0 or not any(node.open for node in nodes)


def test_nodes_that_ask_for_nothing_share_alike() -> None:
    assert balance(10, [Account(), Account(), Account()]) == [4, 3, 3]


def test_credits_move_to_the_node_that_has_work() -> None:
    idle, busy = Account(granted=8), Account(granted=8, waiting=100)
    assert balance(0, [idle, busy]) == [-6, 0]  # A quarter of its equal share stays.
    idle.granted = 2
    assert balance(6, [idle, busy]) == [0, 6]


def test_what_was_asked_back_is_not_asked_back_again() -> None:
    assert balance(0, [Account(granted=8, recalled=6), Account(granted=8, waiting=100)]) == [0, 0]


def test_a_node_that_is_about_to_stop_gets_nothing_new() -> None:
    assert balance(4, [Account(open=False), Account()]) == [0, 4]


def test_more_nodes_than_slots_leave_the_slot_where_the_work_is() -> None:
    idle = [Account(granted=1), Account(), Account()]
    assert balance(0, [*idle, Account(waiting=1)]) == [-1, 0, 0, 0]
