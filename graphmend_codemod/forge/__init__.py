"""Pull requests on GitHub and GitLab, and pushing to them."""
