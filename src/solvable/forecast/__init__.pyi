from solvable.forecast.curve import LearningCurve as LearningCurve
from solvable.forecast.forecasting import forecast as forecast
from solvable.forecast.results import Diagnostics as Diagnostics
from solvable.forecast.results import Estimate as Estimate
from solvable.forecast.results import Forecast as Forecast
from solvable.forecast.results import Prediction as Prediction
from solvable.forecast.results import Score as Score
