"""The client: typed jobs, handles, grouped enqueues; async inside, with a sync edge from one file."""
