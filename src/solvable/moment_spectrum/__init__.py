"""Spectra of label-weighted moments of finitely many samples: draws, populations, noise, spikes."""
