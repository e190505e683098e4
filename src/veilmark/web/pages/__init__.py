"""The pages, a module each, with its `router` and, where it stands in the navigation, its `NAV`."""
