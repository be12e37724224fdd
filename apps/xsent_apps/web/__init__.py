"""A page that searches, sorts and maps texts in the browser."""
