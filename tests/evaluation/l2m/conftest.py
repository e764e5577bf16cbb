"""Tests of this folder never see, nor leave anything in, the user's own L2M data."""

import pytest


@pytest.fixture(autouse=True)
def l2data_folder(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("L2DATA", str(tmp_path_factory.mktemp("l2data")))
