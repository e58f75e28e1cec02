"""GM7xx: graph breaks that no rule fixes."""
