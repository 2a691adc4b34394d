"""Posteriors of one direction given labels, and the messages that follow from them."""

from solvable.message_passing.line_posterior import LinePosterior
from solvable.message_passing.outputs import output_message
from solvable.message_passing.preimages import PreimagePosterior


def posterior_given(output, labels):
    return LinePosterior(output, labels) if output.noise else PreimagePosterior(output, labels)


def messages_of(posterior):
    return lambda omega, V: output_message(posterior(omega, V), omega, V)
