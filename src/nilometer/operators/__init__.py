"""Stateful operators: columns and watermarks in, columns out; no clock, no engine."""
