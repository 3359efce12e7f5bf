"""The server end of executors: sessions, dispatch and reports."""
