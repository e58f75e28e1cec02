"""Statements as one operator: regions, loops, single calls that Dynamo cannot trace."""
