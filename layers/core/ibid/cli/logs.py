"""Logs of a command: one line an event, with its fields, on stderr."""

import logging

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
# These write what they send, prompts included, at DEBUG; no setting may turn that on.
_CHATTY = ("botocore", "httpcore", "httpx", "openai", "urllib3")


class FieldsFormatter(logging.Formatter):
    """Writes `time level logger event field=value ...`; no field ever holds content."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record; an exception is named by its type, since its text may hold content."""
        fields = {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = record.exc_info[0].__name__
        parts = [
            self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            record.levelname,
            record.name,
            record.getMessage().replace(" ", "_"),
            *(f"{name}={value!r}" for name, value in fields.items()),
        ]
        return " ".join(parts)


def log_to_stderr(level: int = logging.WARNING) -> None:
    """Send what is at least of a level to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(FieldsFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
