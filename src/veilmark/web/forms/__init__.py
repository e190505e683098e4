"""What a form means: its fields checked, turned into requests to the workbench, and back."""
