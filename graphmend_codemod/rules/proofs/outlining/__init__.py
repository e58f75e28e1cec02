"""Code that Dynamo cannot trace as one custom operator.

`effects/` says what may change in it, `functions/`, `statements/` and `sequences/` what becomes one, `recorded/`
does so with what a run showed, `symbols/` has numbers that stay in the graph; `texts/` is written into files.
"""
