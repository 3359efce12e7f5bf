"""All cases in one place, for `import *`."""

from luciole.testing.contract.test_catalog import TestIds, TestJobs, TestRegistration, TestReschedule
from luciole.testing.contract.test_editing import TestEdits, TestOver, TestStates
from luciole.testing.contract.test_executions import TestCancel, TestEnqueue, TestPrune, TestUnpark
from luciole.testing.contract.test_leases import TestLeases, TestNodes
from luciole.testing.contract.test_life import TestHints, TestLife
from luciole.testing.contract.test_manual import TestManualOverlap, TestManualRuns
from luciole.testing.contract.test_outbox import (
    TestDeliveries,
    TestOpenEntries,
    TestReadyEntries,
    TestRunning,
    TestWithdrawals,
)
from luciole.testing.contract.test_overlap import TestForbidAndAllow, TestLedger, TestQueueOne, TestReplace
from luciole.testing.contract.test_planning import TestDueCursors, TestParking, TestPlans, TestSteps
from luciole.testing.contract.test_reads import TestExecutionLists, TestScheduleLists, TestSummaries
from luciole.testing.contract.test_realigning import TestRealigning
from luciole.testing.contract.test_routes import TestReadyRoutes
from luciole.testing.contract.test_settling import TestBytes, TestEnds, TestTries
from luciole.testing.contract.test_strides import TestGroups, TestStrideRaces, TestStrides

__all__ = [
    "TestBytes",
    "TestCancel",
    "TestDeliveries",
    "TestDueCursors",
    "TestEdits",
    "TestEnds",
    "TestEnqueue",
    "TestExecutionLists",
    "TestForbidAndAllow",
    "TestGroups",
    "TestHints",
    "TestIds",
    "TestJobs",
    "TestLeases",
    "TestLedger",
    "TestLife",
    "TestManualOverlap",
    "TestManualRuns",
    "TestNodes",
    "TestOpenEntries",
    "TestOver",
    "TestParking",
    "TestPlans",
    "TestPrune",
    "TestQueueOne",
    "TestReadyEntries",
    "TestReadyRoutes",
    "TestRealigning",
    "TestRegistration",
    "TestReplace",
    "TestReschedule",
    "TestRunning",
    "TestScheduleLists",
    "TestStates",
    "TestSteps",
    "TestStrideRaces",
    "TestStrides",
    "TestSummaries",
    "TestTries",
    "TestUnpark",
    "TestWithdrawals",
]
