"""What a rule is, how it is found, and what it sees of a site."""
