from solvable.forecast.curve import LearningCurve as LearningCurve
from solvable.forecast.forecasting import forecast as forecast
from solvable.forecast.results import Forecast as Forecast
from solvable.forecast.results import Score as Score
