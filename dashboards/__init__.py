"""Everything a person sees: pages, sockets, plots."""
