"""The verbs, one module each. The command line, the web app and `Study` call these."""
