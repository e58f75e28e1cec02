"""Recording what Dynamo does in the user's own run: the part of `graphmend trace` that runs beside torch.

`recorder` is handed to any interpreter by a path alone, so it needs nothing but the standard library; what it writes is
read by `graphmend_codemod.trace`, in a process without torch. Nothing is imported here, for a pytest plugin is below.
"""
