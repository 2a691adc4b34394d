from solvable.models.boltzmann.learner import BoltzmannMachine as BoltzmannMachine
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
from solvable.networks.gradient_network import (
    GradientNetworkClassifier as GradientNetworkClassifier,
)
from solvable.networks.gradient_network import GradientNetworkRegressor as GradientNetworkRegressor
from solvable.networks.layers import Network as Network
from solvable.networks.lofi import NeuralLoFiClassifier as NeuralLoFiClassifier
from solvable.networks.lofi import NeuralLoFiRegressor as NeuralLoFiRegressor
from solvable.networks.lofi import NeuralLoFiTransformer as NeuralLoFiTransformer
