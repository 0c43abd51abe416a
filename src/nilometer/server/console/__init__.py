"""The web console: pages over the service, drawn on the server by NiceGUI."""
