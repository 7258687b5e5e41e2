"""What people answered, and what they are still asked: the inbox, remembered rules, definitions that were agreed to."""
