"""Small models with random weights of classes of the transformers package, made by general rules."""
