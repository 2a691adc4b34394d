from solvable.models.compositional.target import CompositionalTarget as CompositionalTarget
from solvable.models.hierarchy.grammar.boolean import DeepQuadraticBoolean as DeepQuadraticBoolean
from solvable.models.hierarchy.labels.target import LabelHierarchy as LabelHierarchy
from solvable.models.hierarchy.sparse import SparseRandomHierarchy as SparseRandomHierarchy
from solvable.models.hierarchy.target import RandomHierarchy as RandomHierarchy
from solvable.models.late_interaction.teacher import (
    LateInteractionTeacher as LateInteractionTeacher,
)
from solvable.models.lofi.subspace_channel import SubspaceChannel as SubspaceChannel
from solvable.models.lofi.target import GaussianChannel as GaussianChannel
from solvable.models.multi_index.target import MultiIndexTarget as MultiIndexTarget
from solvable.models.quadratic.network.target import QuadraticTarget as QuadraticTarget
from solvable.models.sequential.target import HierarchicalTarget as HierarchicalTarget
