"""What happens to memories: remembered, changed, forgotten."""
