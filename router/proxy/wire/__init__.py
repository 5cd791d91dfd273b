"""HTTP/1.x as bytes in, values out: strict heads, body framing, and their encoding. No socket and no clock.

llhttp (through httptools) reads the heads; a grammar of our own reads them first and refuses whatever one of the two
would have to guess about. Body framing is ours, because a reader must know exactly where a message ends.
"""
