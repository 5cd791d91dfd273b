"""What the live page costs a browser and the web process: ``pytest -m benchmark tests/benchmarks/live_page -s``."""
