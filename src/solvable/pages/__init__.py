"""Templates, drawings, small pictures and the result directory of all reports."""
