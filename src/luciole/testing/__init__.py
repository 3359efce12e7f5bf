"""What users of Luciole, its bench and its own tests test with."""
