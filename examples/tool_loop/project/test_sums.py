"""Tests of sums."""

import unittest

from sums import total


class TotalTest(unittest.TestCase):
    def test_counts_the_last_number(self) -> None:
        self.assertEqual(total(4), 10)
