"""Posteriors of one direction given labels, and the messages that follow from them."""

import numpy as np

from solvable.message_passing.line_posterior import LinePosterior
from solvable.message_passing.outputs import Message
from solvable.message_passing.preimages import PreimagePosterior


def posterior_given(output, labels):
    return LinePosterior(output, labels) if output.noise else PreimagePosterior(output, labels)


def messages_of(posterior):
    return lambda omega, V: output_message(posterior(omega, V), omega, V)


def output_message(posterior, omega, variance):
    """Output messages computed from a posterior."""
    inverse = np.linalg.inv(variance)
    # g = V^-1 (E[z | y] - omega),  dg/domega = V^-1 Cov[z | y] V^-1 - V^-1
    values = (posterior.mean - omega) @ inverse
    slope = inverse @ posterior.covariance.sum(axis=0) @ inverse - len(omega) * inverse
    return Message(values, (slope + slope.T) / 2)
