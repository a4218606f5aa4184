"""What is done again and again ends with its context, not before it was done often enough, and tells what failed."""

import pytest

from tests.faults.repeating import Repeating


class Counted(Repeating):
    acts = 0

    def act(self) -> bool:
        self.acts += 1
        return True


class Failing(Repeating):
    def act(self) -> bool:
        raise LookupError("nothing is there")


def test_it_is_done_so_often_at_least_however_soon_the_context_ends() -> None:
    with Counted(3600.0, 1, least=2) as counted:
        pass

    assert counted.acts == 2


def test_what_fails_is_raised_at_the_end() -> None:
    with pytest.raises(LookupError, match="nothing is there"), Failing(0.0, 1, least=1):
        pass
