from solvable.plots.figure import Figure as Figure
from solvable.plots.figure import Marker as Marker
from solvable.plots.figure import Series as Series
from solvable.plots.figure_data import FigureData as FigureData
from solvable.plots.figure_data import SeriesData as SeriesData
from solvable.plots.files import write_figures as write_figures
from solvable.plots.numbers import format_number as format_number
from solvable.plots.recording_backend import record as record
