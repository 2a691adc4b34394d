from solvable.links import Link as Link
from solvable.links import make_link as make_link
from solvable.models.hierarchy.labels.theory import label_cascade as label_cascade
from solvable.models.late_interaction.labels import label_factors as label_factors
from solvable.models.late_interaction.overlaps import (
    predict_late_interaction as predict_late_interaction,
)
from solvable.models.late_interaction.ranking import pooled_ndcg as pooled_ndcg
from solvable.models.late_interaction.theory import gradient_gain as gradient_gain
from solvable.models.late_interaction.theory import pooled_fraction as pooled_fraction
from solvable.models.lofi.emergence import predicted_emergence as predicted_emergence
from solvable.models.multi_index.emergence.theory import sgd_emergence as sgd_emergence
from solvable.models.multi_index.emergence.theory import sgd_exponents as sgd_exponents
from solvable.models.multi_index.overlaps import predict_spectral as predict_spectral
from solvable.models.quadratic.diagonal_theory import solve_diagonal as solve_diagonal
from solvable.models.quadratic.flow_theory import feature_learning_times as feature_learning_times
from solvable.models.quadratic.flow_theory import quadratic_flow as quadratic_flow
from solvable.models.quadratic.flow_theory import width_floor as width_floor
from solvable.models.quadratic.narrow_theory import solve_narrow as solve_narrow
from solvable.models.quadratic.network.errors import decompose_error as decompose_error
from solvable.models.quadratic.network.errors import (
    optimal_regularisation as optimal_regularisation,
)
from solvable.models.quadratic.network.phases import PowerLawPhases as PowerLawPhases
from solvable.models.quadratic.network.phases import quadratic_phase as quadratic_phase
from solvable.models.quadratic.network.spectral_phase import spectral_phase as spectral_phase
from solvable.models.quadratic.network.theory import quadratic_curve as quadratic_curve
from solvable.models.quadratic.network.theory import solve_quadratic as solve_quadratic
from solvable.models.quadratic.network.theory import state_at as state_at
from solvable.models.sequential.theory import predict_sequential as predict_sequential
from solvable.models.two_layer_posterior.constants import specialisation as specialisation
from solvable.moment_spectrum.kernel_degrees import best_kernel_error as best_kernel_error
