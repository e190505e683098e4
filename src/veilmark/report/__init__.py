"""Charts and pages. Needs the extra `report` (Altair, vl-convert)."""
