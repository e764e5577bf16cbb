"""The generator's side of its RabbitMQ transport: agents in containers play our experiments.

`protocol` has the messages, `remote` the conversation with one agent, `server` all of them at once,
and `transport` the broker.
"""
