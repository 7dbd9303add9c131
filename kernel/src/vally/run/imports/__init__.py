"""Trajectories that other programs recorded."""
