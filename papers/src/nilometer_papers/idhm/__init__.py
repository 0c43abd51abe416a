"""Intelligent detection of hazardous materials: gamma detectors over boxes on a belt."""
