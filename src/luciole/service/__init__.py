"""Use cases that the client, the command line and programs share: pure checks around the verbs of a store."""
