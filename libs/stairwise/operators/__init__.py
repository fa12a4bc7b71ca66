"""Operators: the contract that every driver drives (``contract``), state in pages (``store``), the algorithms."""
