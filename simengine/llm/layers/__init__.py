"""The layers around a backend: each wraps the next language model and adds one promise."""
