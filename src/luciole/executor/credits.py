"""How an executor shares its slots among the nodes; a pure decision."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Account:
    """What one node may still deliver, as its executor counts it."""

    granted: int = 0  #: credits that it has, those asked back included
    recalled: int = 0  #: asked back and not answered yet
    waiting: int = 0  #: what it could deliver beyond its credits, as it last said
    open: bool = True  #: it takes new credits


def balance(free: int, accounts: Sequence[Account]) -> list[int]:
    """Return by how much to change each node's credits: positive is granted, negative is asked back.

    Credits follow demand: nodes with waiting work share what there is, the others keep a quarter of an equal share,
    so that their next attempt waits for nothing. Without any demand all shares are equal. Credits are asked
    back only for somebody who lacks them.

    Args:
        free: slots that are neither in use nor granted; what is granted here never exceeds them.
        accounts: one for each node.
    """
    targets = _targets(free + sum(account.granted for account in accounts), accounts)
    changes = [0] * len(accounts)
    rest = max(free, 0)
    lacking = 0
    for index, account in enumerate(accounts):
        lack = max(targets[index] - account.granted, 0)
        changes[index] = min(lack, rest)
        rest -= changes[index]
        lacking += lack - changes[index]
    coming = sum(account.recalled for account in accounts)
    for index, account in enumerate(accounts):
        spare = account.granted - account.recalled - targets[index]
        asked = min(spare, lacking - coming)
        if asked > 0 and changes[index] == 0:
            changes[index] = -asked
            coming += asked
    return changes


def _targets(pool: int, accounts: Sequence[Account]) -> list[int]:
    pool = max(pool, 0)
    takers = [account for account in accounts if account.open]
    busy = [account for account in takers if account.waiting > 0]
    idle_share = 0 if not busy else max(pool // (4 * len(takers)), int(pool >= 2 * len(takers)))
    sharing = busy or takers
    if not sharing:
        return [0] * len(accounts)
    share, extra = divmod(pool - idle_share * (len(takers) - len(sharing)), len(sharing))
    targets = []
    for account in accounts:
        if not account.open:
            targets.append(0)
        elif busy and account.waiting <= 0:
            targets.append(idle_share)
        else:
            targets.append(share + (extra > 0))
            extra -= 1
    return targets
