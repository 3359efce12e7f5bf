"""Two revisions on one machine: short slices in fresh processes, interleaved, judged in pairs."""
