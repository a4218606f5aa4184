"""Signals that end the local stack."""

import os
import signal

import pytest

from ragstack_local.stack.processes import held_interrupts, raised_interrupts

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_interrupts(number: signal.Signals) -> None:
    with raised_interrupts(), pytest.raises(KeyboardInterrupt):
        send(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_waits_while_a_process_is_started_and_noted(number: signal.Signals) -> None:
    noted = []

    def start() -> None:
        with held_interrupts():
            send(number)
            noted.append("the process")

    with raised_interrupts(), pytest.raises(KeyboardInterrupt):
        start()

    assert noted == ["the process"]


def test_without_a_signal_nothing_is_raised_and_the_handlers_are_those_of_before() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]

    with raised_interrupts(), held_interrupts():
        pass

    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raised_interrupts():
            send(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
