"""Who may come in: sessions, accounts, the guard that every request passes, and the audit log."""
