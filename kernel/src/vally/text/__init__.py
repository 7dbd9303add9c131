"""Text machinery of the kernel: regular expressions, globs, durations, hints and display forms.

The bottom layer: nothing here knows an eval, a trajectory or a plugin.
"""
