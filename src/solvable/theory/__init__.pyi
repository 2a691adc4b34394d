from solvable.links import Link as Link
from solvable.links import make_link as make_link
from solvable.models.lofi.constant import predict_lifted_null as predict_lifted_null
from solvable.models.lofi.constant import predict_published_filter as predict_published_filter
from solvable.models.lofi.emergence import FeatureEmergence as FeatureEmergence
from solvable.models.lofi.emergence import predicted_emergence as predicted_emergence
from solvable.models.lofi.emergence import residual_dimension as residual_dimension
from solvable.models.lofi.lift import LiftedPrediction as LiftedPrediction
from solvable.models.lofi.lift import activation_energies as activation_energies
from solvable.models.lofi.lift import predict_lifted_filter as predict_lifted_filter
from solvable.models.lofi.theory import FilterPrediction as FilterPrediction
from solvable.models.lofi.theory import predict_filter as predict_filter
from solvable.models.lofi.width import WidthConvergence as WidthConvergence
from solvable.models.lofi.width import fourth_moment_kernel as fourth_moment_kernel
from solvable.models.lofi.width import width_convergence as width_convergence
from solvable.models.multi_index.emergence.theory import SgdEmergence as SgdEmergence
from solvable.models.multi_index.emergence.theory import SgdExponents as SgdExponents
from solvable.models.multi_index.emergence.theory import sgd_emergence as sgd_emergence
from solvable.models.multi_index.emergence.theory import sgd_exponents as sgd_exponents
from solvable.models.multi_index.hierarchy import ScalingLaw as ScalingLaw
from solvable.models.multi_index.hierarchy import hierarchical_law as hierarchical_law
from solvable.models.multi_index.hierarchy import hierarchical_thresholds as hierarchical_thresholds
from solvable.models.multi_index.hierarchy import sequential_overlaps as sequential_overlaps
from solvable.models.multi_index.overlaps import SpectralPrediction as SpectralPrediction
from solvable.models.multi_index.overlaps import predict_spectral as predict_spectral
from solvable.models.multi_index.recovery import RecoveryStep as RecoveryStep
from solvable.models.multi_index.recovery import recovery_sequence as recovery_sequence
from solvable.models.multi_index.recovery import weak_recovery as weak_recovery
from solvable.models.quadratic.diagonal import solve_diagonal as solve_diagonal
from solvable.models.quadratic.flow import feature_learning_times as feature_learning_times
from solvable.models.quadratic.flow import quadratic_flow as quadratic_flow
from solvable.models.quadratic.flow import width_floor as width_floor
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
from solvable.models.sequential.errors import readout_error as readout_error
from solvable.models.sequential.power_law_sums import error_exponent as error_exponent
from solvable.models.sequential.power_law_sums import (
    normalised_mse_asymptote as normalised_mse_asymptote,
)
from solvable.models.sequential.power_law_sums import normalised_mse_sum as normalised_mse_sum
from solvable.models.sequential.power_law_sums import recovered_count as recovered_count
from solvable.models.sequential.power_law_sums import threshold_exponent as threshold_exponent
from solvable.models.sequential.power_law_sums import total_to_tail_ratio as total_to_tail_ratio
from solvable.models.sequential.power_law_sums import unrecovered_tail as unrecovered_tail
from solvable.models.sequential.power_law_sums import weight_scale as weight_scale
from solvable.models.sequential.theory import SequentialPrediction as SequentialPrediction
from solvable.models.sequential.theory import predict_sequential as predict_sequential
from solvable.models.two_layer_posterior.constants import specialisation as specialisation
from solvable.moment_spectrum.degree_two_background import (
    QuadraticBackground as QuadraticBackground,
)
from solvable.moment_spectrum.degree_two_background import (
    quadratic_background as quadratic_background,
)
from solvable.moment_spectrum.draws import LatentSample as LatentSample
from solvable.moment_spectrum.draws import gaussian_draw as gaussian_draw
from solvable.moment_spectrum.draws import quadratic_draw as quadratic_draw
from solvable.moment_spectrum.exact_population import PopulationMatrix as PopulationMatrix
from solvable.moment_spectrum.exact_population import overlap_floor as overlap_floor
from solvable.moment_spectrum.exact_population import population_bulk as population_bulk
from solvable.moment_spectrum.kernel_degrees import LearningExponents as LearningExponents
from solvable.moment_spectrum.kernel_degrees import best_kernel_error as best_kernel_error
from solvable.moment_spectrum.kernel_degrees import degree_dimension as degree_dimension
from solvable.moment_spectrum.kernel_degrees import degree_energies as degree_energies
from solvable.moment_spectrum.kernel_degrees import (
    single_index_exponents as single_index_exponents,
)
from solvable.moment_spectrum.moments import FiniteSizeMoments as FiniteSizeMoments
from solvable.moment_spectrum.moments import finite_size_moments as finite_size_moments
from solvable.moment_spectrum.neighbour_mixing import neighbour_mixing as neighbour_mixing
from solvable.moment_spectrum.sample_kernel import SampleKernel as SampleKernel
from solvable.moment_spectrum.sample_kernel import corrected_kernel as corrected_kernel
from solvable.moment_spectrum.sample_kernel import plain_kernel as plain_kernel
from solvable.spectra.thresholds import InterpolationThreshold as InterpolationThreshold
from solvable.spectra.thresholds import (
    bayes_perfect_recovery_threshold as bayes_perfect_recovery_threshold,
)
from solvable.spectra.thresholds import flow_recovery_threshold as flow_recovery_threshold
from solvable.spectra.thresholds import interpolation_threshold as interpolation_threshold
from solvable.spectra.thresholds import (
    perfect_recovery_threshold as perfect_recovery_threshold,
)
