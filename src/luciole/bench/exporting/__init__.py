"""A result in the formats that other tools read."""

from luciole.bench.exporting.bmf import bmf
from luciole.bench.exporting.csv import csv
from luciole.bench.exporting.gha import gha
from luciole.bench.exporting.openmetrics import openmetrics
from luciole.bench.exporting.pyperf import pyperf

__all__ = ["bmf", "csv", "gha", "openmetrics", "pyperf"]
