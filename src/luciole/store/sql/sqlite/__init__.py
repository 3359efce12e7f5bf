"""SQLite: the default store, one file, one writer for each process."""
