"""What inference asks of functions, and of the steps that are P4's operators.

`functions` compares what a function takes with what its stream carries, `operator_steps` says what
such a step emits and keeps. Imports the steps. Begin with `functions`.
"""

__all__: list[str] = []
