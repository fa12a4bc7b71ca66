"""Windows: what they are (``spec``), which rows they hold (``scope``), when they report (``schedule``),
when a row leaves them (``expiry``)."""
