"""Calls of compiled parts with torch's memory."""
