"""What decoding raises for bytes that are not what was asked for, whoever sent them."""

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Of msgspec's decoders. Values that are nested too deep end in a RecursionError, also those that nobody asked for."""
