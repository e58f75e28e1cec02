"""What breaks mean under torch_xla: splits in Dynamo only, reads by the host, operations without a lowering."""
