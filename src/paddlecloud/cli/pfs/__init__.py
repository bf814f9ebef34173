"""The commands of PaddleFS: here lives what `paddlecloud pfs ...` and its old spellings do.

One module per action, with the same names as every verb (USAGE, HELP, FLAGS, run). Nothing here
moves a byte itself: that is `paddlecloud.sdk.pfs`.
"""
