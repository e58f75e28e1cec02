"""What every part uses: findings, settings, sources, the cache, workers and the terminal."""
