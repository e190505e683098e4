"""A study: the study file (`spec`), the object with the verbs (`study`), and how its tables are opened."""
