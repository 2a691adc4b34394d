from solvable.data_verbs import activations_of as activations_of
from solvable.data_verbs import diagnose_checkpoints as diagnose_checkpoints
from solvable.data_verbs import diagnose_weights as diagnose_weights
from solvable.data_verbs import forecast_curve as forecast_curve
from solvable.data_verbs import learn_features as learn_features
from solvable.data_verbs import predict_rows as predict_rows
from solvable.explore.functions import explore_system as explore_system
from solvable.probes.verb import probe as probe
from solvable.retrieve.functions import index_documents as index_documents
from solvable.retrieve.functions import search_documents as search_documents
from solvable.retrieve.functions import train_retriever as train_retriever
from solvable.scale.question import scale_network as scale_network
from solvable.study.results import load as load
from solvable.verbs import compare as compare
from solvable.verbs import run as run
from solvable.verbs import theory_of as theory_of

__version__: str
