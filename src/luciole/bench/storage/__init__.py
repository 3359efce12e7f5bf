"""Storage: the verbs of one store, from enqueue to a load by id, without node, executor or network."""
