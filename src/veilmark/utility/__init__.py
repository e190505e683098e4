"""How much information a release has lost: one small function a metric."""
