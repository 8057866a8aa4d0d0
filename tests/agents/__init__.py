"""Tests that ask the program as agents and notebooks do."""
