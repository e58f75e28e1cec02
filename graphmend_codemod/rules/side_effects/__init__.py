"""GM2xx: log calls and other side effects."""
