"""Long work: jobs in processes of their own, and what they do."""
