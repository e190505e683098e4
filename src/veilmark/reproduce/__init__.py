"""The papers' printed tables beside what veilmark makes of the same data."""
