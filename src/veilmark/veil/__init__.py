"""Anonymization: the least change that makes a table safe enough."""
