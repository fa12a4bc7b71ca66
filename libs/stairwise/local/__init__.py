"""The local engine: scripts over files, in this process, with nothing but Python."""
