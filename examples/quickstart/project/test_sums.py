"""Tests of sums."""

import unittest

from sums import total


class TotalTest(unittest.TestCase):
    def test_is_zero_for_nothing(self) -> None:
        self.assertEqual(total(0), 0)
