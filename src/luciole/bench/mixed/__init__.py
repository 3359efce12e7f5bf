"""Mixed: schedules, requests, retries and cancellations at once."""
