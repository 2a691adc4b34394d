from solvable.learn.learning import fingerprint_of as fingerprint_of
from solvable.learn.learning import learn as learn
from solvable.learn.request import Request as Request
from solvable.learn.results import Learned as Learned
from solvable.learn.results import MethodScore as MethodScore
from solvable.learn.results import Outlook as Outlook
