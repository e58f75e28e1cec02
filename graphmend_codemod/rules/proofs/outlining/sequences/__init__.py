"""Recurrent layers as operators, also on packed sequences."""
