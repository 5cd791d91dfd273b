"""Views, one module a page. They call selectors and services and render; nothing else."""
