from solvable.learn.applied import Applied as Applied
from solvable.learn.estimators import TableClassifier as TableClassifier
from solvable.learn.estimators import TableRegressor as TableRegressor
from solvable.learn.learning import learn as learn
from solvable.learn.request import Request as Request
from solvable.learn.results import Learned as Learned
