"""veilmark: score, anonymize, mark and trace person-level tables."""

__version__ = "0.1.0.dev0"
