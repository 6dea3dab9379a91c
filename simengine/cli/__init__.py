"""The command line: thin, over scenarios, logs and measures."""
