"""GM6xx: Python and NumPy that Dynamo cannot trace."""
