"""The stream database as a server: HTTP, results to clients, a web console."""

from nilometer.extras import require_extras

require_extras("the server", "server")
