"""The agreement machine: two stores that are told the same must answer the same.

```python
class MyStoreAgrees(StoreAgreement):
    make_left = MemoryHarness.make
    make_right = MyHarness.make


TestMyStoreAgrees = MyStoreAgrees.TestCase
```
"""

from luciole.testing.agreement.machine import StoreAgreement

__all__ = ["StoreAgreement"]
