from solvable.diagnose.attention.heads_of_file import diagnose_heads as diagnose_heads
from solvable.diagnose.cuts import cut_matrix as cut_matrix
from solvable.diagnose.diagnosis import MatrixDiagnosis as MatrixDiagnosis
from solvable.diagnose.matrices_of_file import diagnose_file as diagnose_file
from solvable.diagnose.matrix import diagnose_matrix as diagnose_matrix
from solvable.diagnose.quick import quick_rows as quick_rows
from solvable.diagnose.quick_result import QuickRow as QuickRow
