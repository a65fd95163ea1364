"""Pure functions over strings; nothing here touches a file."""
