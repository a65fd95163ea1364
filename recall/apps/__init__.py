"""What people and agents start: the command line."""
