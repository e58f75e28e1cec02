"""GM4xx: tensors converted to Python scalars."""
