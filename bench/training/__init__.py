"""What training costs: time and memory."""
