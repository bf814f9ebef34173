"""Routers: parse, call one service function, encode. No rows, no engines, no decisions here."""
