from solvable.message_passing.channels import AdditiveChannel as AdditiveChannel
from solvable.message_passing.loop import Start as Start
from solvable.message_passing.loop import message_passing as message_passing
