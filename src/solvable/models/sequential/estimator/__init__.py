"""Layer-wise spectral regression: filters, selection, second layer, readout."""
