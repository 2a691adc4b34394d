from solvable.scale.network import Attention as Attention
from solvable.scale.network import Layer as Layer
from solvable.scale.network import Network as Network
from solvable.scale.network import OwnMonomials as OwnMonomials
from solvable.scale.reading import network_of_flags as network_of_flags
from solvable.scale.reading import read_network as read_network
from solvable.scale.scaling import Scaling as Scaling
from solvable.scale.scaling import scaling_of as scaling_of
