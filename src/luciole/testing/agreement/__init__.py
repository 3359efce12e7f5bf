"""The agreement machine: two stores that are told the same must answer the same.

```python
class MyStoreAgrees(StoreAgreement):
    make_left = MemoryHarness.make
    make_right = MyHarness.make


TestMyStoreAgrees = MyStoreAgrees.TestCase
```

`StoreSerializes` is the same machine with two verbs at one moment, for a store whose transactions can overlap.
"""

from luciole.testing.agreement.machine import StoreAgreement
from luciole.testing.agreement.races import StoreSerializes

__all__ = ["StoreAgreement", "StoreSerializes"]
