from solvable.models.sequential.target import HierarchicalTarget as HierarchicalTarget
