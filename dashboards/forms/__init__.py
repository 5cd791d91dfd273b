"""Forms, one subject a file. They turn text into the values of services, which do the checking."""
