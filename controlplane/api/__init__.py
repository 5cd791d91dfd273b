"""The REST interface: resources by version; errors are problem+json, made in :mod:`controlplane.problems`."""
