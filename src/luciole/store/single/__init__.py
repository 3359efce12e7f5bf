"""One-by-one defaults: a store that knows only single items gets the batch verbs, so that the product runs on it.

```python
store = OneByOne(MyStore())  # a `Store`; MyStore has the verbs of `SingleItems`
```

A batch is then as many transactions as it has rows: each row is whole, the batch is not. Every verb is safe to
repeat, so a batch that broke off is simply given again. It is as slow as the database's commits are: a store that
wants more speed overrides the batch verbs in a subclass of `OneByOne`, one after the other, the hottest first.
"""

from luciole.store.single.items import SingleItems
from luciole.store.single.store import OneByOne

__all__ = ["OneByOne", "SingleItems"]
