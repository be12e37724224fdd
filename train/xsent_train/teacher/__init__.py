"""Teachers: frozen models whose vectors a student learns from."""
