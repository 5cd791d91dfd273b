"""The process that a simulation runs in. Knows no Django and no database.

It reads one order from a file, says on standard output how far it is (a line of JSON at a time), leaves its result in
a file, and ends. It never outlives the process that started it: standard input is a pipe that nobody writes to, and its
end means that the parent is gone.
"""
