"""GM1xx: data-dependent branches and loops."""
