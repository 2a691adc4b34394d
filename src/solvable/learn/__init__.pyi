from solvable.learn.applied import Applied as Applied
from solvable.learn.learning import learn as learn
from solvable.learn.request import Request as Request
from solvable.learn.results import Learned as Learned
