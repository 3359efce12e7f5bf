"""Chaos: nodes and executors die or freeze under load, and every fire time still has its one outcome."""
