"""`graphmend trace` without torch: what a run recorded becomes one document, which is joined with findings and shown.

`events` reads what processes wrote, `collect` makes a `document.Trace` of it, `join` says what graphmend can do, and
the views show both. Recording itself is the business of `graphmend_evaluation.tracing`.
"""
