from solvable.diagnose.attention.heads_of_file import diagnose_heads as diagnose_heads
from solvable.diagnose.diagnosis import MatrixDiagnosis as MatrixDiagnosis
from solvable.diagnose.matrices_of_file import diagnose_file as diagnose_file
from solvable.diagnose.matrix import diagnose_matrix as diagnose_matrix
from solvable.diagnose.measured_ranks import MeasuredRanks as MeasuredRanks
from solvable.diagnose.measured_ranks import measure_ranks as measure_ranks
