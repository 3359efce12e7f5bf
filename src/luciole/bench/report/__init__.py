"""Results for people: Markdown, and one HTML file that needs neither a network nor JavaScript."""
