"""The second client, `paddlecloud job ...`: here lives what it understands and how it answers.

`verb` finds the action, `train` and `actions` do it, `answers` holds the shapes both generations
of its users read. Nothing here knows HTTP: that is `paddlecloud.sdk`.
"""
