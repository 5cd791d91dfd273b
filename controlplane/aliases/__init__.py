"""Names that clients may use for a model, or for several models in shares.

Names are compared as routers do it: letter by letter, case included. An alias is looked up before the models that
instances serve, and leads to models only, never to another alias.
"""
