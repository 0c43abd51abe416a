"""What panels of dashboards show: questions about the past, and their answers made small."""
