"""Command plugin: graders put to the test by golden inputs."""
