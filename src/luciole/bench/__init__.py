"""The bench: one question a profile, correctness inside each result, and the machine it was measured on."""
