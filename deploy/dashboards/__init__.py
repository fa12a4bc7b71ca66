"""The Grafana dashboards, as Python: ``make dashboards`` writes them to charts/stairwise/dashboards."""
