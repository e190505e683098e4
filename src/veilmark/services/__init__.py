"""What keeps running: the monitor of queries, and the watch of a folder."""
