"""The executor protocol: messages, how they become bytes, and the connection that carries them."""
