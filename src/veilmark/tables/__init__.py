"""The one idea: a table's distinct values, its equivalence classes and persons, and the recoding that publishes them."""
