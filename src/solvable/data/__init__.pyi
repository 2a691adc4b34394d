from solvable.data.dataset import load as load
from solvable.data.dataset import load_new as load_new
from solvable.data.preparation import Preparation as Preparation
from solvable.data.stream import from_arrays as from_arrays
from solvable.data.stream import open_stream as open_stream
from solvable.data.table import Table as Table
from solvable.data.target import Target as Target
