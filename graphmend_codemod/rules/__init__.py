"""Rules by family, with their framework and proofs."""
