"""Python numbers and lists behind tensors.

`integers/` finds those that tensors were made of, `kept/` lets numbers stay in 0-dim tensors, `fixed_sizes/` has forms
of operators that read none.
"""
