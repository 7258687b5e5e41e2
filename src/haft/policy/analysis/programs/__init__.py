"""What is known of programs: one table a family."""
