"""Code that Dynamo cannot trace as one custom operator."""
