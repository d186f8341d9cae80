"""The same work done by builder and by others, in turn, on one machine."""
