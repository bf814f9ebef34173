"""Tests of the operator against a real Kubernetes control plane."""
