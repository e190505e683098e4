from hypothesis import settings

# Time depends on the machine and on what else it does; tests never judge it.
settings.register_profile("veilmark", deadline=None)
settings.load_profile("veilmark")
