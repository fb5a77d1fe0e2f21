"""The base of all errors that a user can fix; their messages say what to do."""


class KeiseiError(Exception):
    """Something is wrong with what was asked for or with what was found on the disk."""
