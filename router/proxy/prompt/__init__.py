"""From a request body to what the prefix index and the score need: model, prompt bytes, token ids.

One extractor a kind of endpoint; :mod:`router.proxy.routes` says which path has which. An extractor never refuses a
body because an engine would: whatever it does not understand counts as no prompt, and the engine answers for it.
"""
