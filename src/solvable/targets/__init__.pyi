from solvable.models.compositional.target import CompositionalTarget as CompositionalTarget
from solvable.models.lofi.subspace_channel import SubspaceChannel as SubspaceChannel
from solvable.models.lofi.target import GaussianChannel as GaussianChannel
from solvable.models.multi_index.target import MultiIndexTarget as MultiIndexTarget
from solvable.models.quadratic.network.target import QuadraticTarget as QuadraticTarget
from solvable.models.sequential.target import HierarchicalTarget as HierarchicalTarget
