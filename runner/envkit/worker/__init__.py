"""The part that runs inside the image: it measures, observes and prints one JSON document.

It imports only what every image has (torch, numpy and the standard library), so that the same command starts it
under every engine.
"""
