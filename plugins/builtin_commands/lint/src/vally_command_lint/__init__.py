"""Static checks of skills, eval specs and project files."""
