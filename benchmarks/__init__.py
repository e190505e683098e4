"""Speed, shown as ratios: a job against the bare group-by of the same rows, measured in the same run."""
