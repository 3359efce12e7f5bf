"""Do one step of the micro layer so often, and nothing else: what a counter of instructions watches.

Run as `python -m luciole.bench.micro.one NAME ROUNDS`.
"""

import sys

from luciole.bench.micro.steps import MICROS


def main(name: str, rounds: int) -> None:
    """Do the step of a name."""
    step = next(micro for micro in MICROS if micro.name == name).prepare()
    for _ in range(rounds):
        step()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
