"""An open-loop client: sends recorded or invented traffic on time, whatever the answers, and reports what came back.

Nothing here knows which router or engine answers; it speaks the OpenAI API over its own light HTTP client, because
a load generator that is slower than what it measures measures itself.
"""
