"""How memories come, change and go."""
