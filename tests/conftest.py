from hypothesis import settings

from postgres_server import postgres  # noqa: F401  (one server for all tests that want one)

# Time depends on the machine and on what else it does; tests never judge it.
settings.register_profile("veilmark", deadline=None)
settings.load_profile("veilmark")
