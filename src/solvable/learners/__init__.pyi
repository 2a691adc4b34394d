from solvable.learn.estimators import TableClassifier as TableClassifier
from solvable.learn.estimators import TableRegressor as TableRegressor
from solvable.models.boltzmann.learner import BoltzmannMachine as BoltzmannMachine
from solvable.models.hierarchy.grammar.learner.convolutional import (
    FullyConnectedNetwork as FullyConnectedNetwork,
)
from solvable.models.hierarchy.grammar.learner.convolutional import (
    HierarchicalCNN as HierarchicalCNN,
)
from solvable.models.hierarchy.grammar.learner.count_cluster import (
    CountClusterClassifier as CountClusterClassifier,
)
from solvable.models.hierarchy.grammar.learner.kernel import KernelClassifier as KernelClassifier
from solvable.models.hierarchy.grammar.learner.kernel import LazyCNNClassifier as LazyCNNClassifier
from solvable.models.hierarchy.grammar.learner.layerwise import (
    LayerwiseRBFClassifier as LayerwiseRBFClassifier,
)
from solvable.models.hierarchy.grammar.learner.transformer import (
    TransformerClassifier as TransformerClassifier,
)
from solvable.models.hierarchy.labels.learner import (
    LabelCascadeClassifier as LabelCascadeClassifier,
)
from solvable.models.late_interaction.phases import Phase as Phase
from solvable.models.late_interaction.phases import pipeline_phases as pipeline_phases
from solvable.models.late_interaction.phases import train_phases as train_phases
from solvable.models.multi_index.learner import MultiIndexRegressor as MultiIndexRegressor
from solvable.models.quadratic.network.learner import QuadraticNetRegressor as QuadraticNetRegressor
from solvable.models.sequential.estimator.learner import (
    LayerwiseSpectralRegressor as LayerwiseSpectralRegressor,
)
from solvable.models.sequential.estimator.power_iteration import (
    block_power_iteration as block_power_iteration,
)
from solvable.models.two_layer_posterior.learner import LangevinEnsemble as LangevinEnsemble
from solvable.networks.backlofi import BackLoFiClassifier as BackLoFiClassifier
from solvable.networks.backlofi import BackLoFiRegressor as BackLoFiRegressor
from solvable.networks.blocks import Block as Block
from solvable.networks.blocks import network_blocks as network_blocks
from solvable.networks.files import load_model as load_model
from solvable.networks.files import save_model as save_model
from solvable.networks.layers import Network as Network
from solvable.networks.lofi import NeuralLoFiClassifier as NeuralLoFiClassifier
from solvable.networks.lofi import NeuralLoFiRegressor as NeuralLoFiRegressor
from solvable.networks.lofi import NeuralLoFiTransformer as NeuralLoFiTransformer
