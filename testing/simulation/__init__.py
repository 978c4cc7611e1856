"""A seeded world in which the platform's own code runs: virtual time, a network that misbehaves, hosts that die.

Nothing here is a model of the platform. Each host runs the real parts on an event loop of its own whose time the world
keeps; only what the operating system gives is simulated: clocks, connections, processes, disks. One seed is one story.
(The idea is FoundationDB's and TigerBeetle's: production code under a simulator, time as an argument.)
"""
