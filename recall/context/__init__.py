"""Everything that becomes text for the model."""
