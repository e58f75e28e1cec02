"""Code that Dynamo cannot trace and that no rule rewrites."""
