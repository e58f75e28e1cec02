"""The published table of GraphMend (arXiv 2509.16248), measured again: small models with the same break sites."""
