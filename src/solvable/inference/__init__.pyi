from solvable.inference.outputs import Output as Output
from solvable.inference.priors import Density as Density
from solvable.inference.priors import Discrete as Discrete
from solvable.inference.priors import GaussBernoulli as GaussBernoulli
from solvable.inference.priors import Gaussian as Gaussian
from solvable.inference.priors import Prior as Prior
from solvable.inference.priors import Rademacher as Rademacher
