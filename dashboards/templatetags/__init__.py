"""Template tags of the dashboards."""
