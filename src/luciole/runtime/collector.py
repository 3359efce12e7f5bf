"""The garbage collector of a process that holds many small values."""

import gc

#: Net allocations before the youngest generation is looked through; Python's own default is 700.
_YOUNGEST_MAX = 50_000
_YOUNG_ROUNDS = 20
_OLD_ROUNDS = 100


def calm_collector() -> None:
    """Make the collector look less often through values that are no garbage.

    A node keeps tens of thousands of entries and makes as many a second, freed by reference counts alone. With the
    defaults, walking through them again and again cost 3 of the 18 us of CPU that planning one job takes. For whole
    processes of the product: an embedding program decides for itself.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNGEST_MAX, _YOUNG_ROUNDS, _OLD_ROUNDS)
